"use strict";
// Tables of engines or layouts show what is chosen, in each setting the best row first, with its distance to the best.
const tables = [...document.querySelectorAll("table")].map(table => {
  const heads = [...table.tHead.rows[0].cells], keys = heads.filter(h => h.className === "key");
  const at = name => keys.findIndex(h => h.textContent === name);
  return { table, heads, keys: keys.length, engine: at("engine"), layout: at("layout"), rows: [...table.tBodies[0].rows], by: heads.findIndex(h => h.dataset.better) };
});
const ranked = tables.filter(t => t.engine + t.layout > -2);
const values = key => [...new Set(ranked.flatMap(t => t[key] < 0 ? [] : t.rows.map(r => r.cells[t[key]].textContent)))].filter(v => v);
const hidden = { engine: new Set(), layout: new Set() };
const form = document.querySelector("#filter");

// show hides what is not chosen, and ranks the rest.
function show() {
  for (const t of tables) {
    // A column may be an engine's.
    t.heads.forEach((h, i) => {
      const hide = i >= t.keys && hidden.engine.has(h.textContent.split(", ")[0]);
      for (const row of [t.table.tHead.rows[0], ...t.rows]) row.cells[i].hidden = hide;
    });
    for (const row of t.rows) row.hidden = ["engine", "layout"].some(key => t[key] >= 0 && hidden[key].has(row.cells[t[key]].textContent));
  }
  ranked.forEach(rank);
}

// rank puts the rows of each setting into order.
function rank(t) {
  if (t.by < 0) return;
  const better = Number(t.heads[t.by].dataset.better), settings = new Map();
  t.heads.forEach((h, i) => h.classList.toggle("by", i === t.by));
  for (const row of t.rows) {
    const setting = [...row.cells].slice(0, t.keys).filter((_, i) => i !== t.engine && i !== t.layout).map(c => c.textContent).join();
    settings.set(setting, [...(settings.get(setting) || []), row]);
  }
  for (const rows of settings.values()) {
    const value = row => row.hidden || row.cells[t.by].dataset.rank === undefined ? NaN : Number(row.cells[t.by].dataset.rank);
    const known = rows.filter(row => value(row) >= 0).sort((a, b) => better * (value(b) - value(a)));
    const best = known.length ? value(known[0]) : NaN;
    [...known, ...rows.filter(row => !known.includes(row))].forEach((row, i) => {
      const v = value(row), factor = Number((better > 0 ? best / v : v / best).toPrecision(3));
      t.table.tBodies[0].append(row);
      row.classList.toggle("first", i === 0 && settings.size > 1 && rows.length > 1);
      row.distance.textContent = v === best || factor === 1 ? "best" : Number.isFinite(factor) ? (better > 0 ? "÷ " : "× ") + factor.toLocaleString("en") : "–";
    });
  }
}

for (const key of ["engine", "layout"]) {
  const names = values(key);
  if (names.length > 1) form.append(key + "s:", ...names.map(name => {
    const label = document.createElement("label"), box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, name });
    box.onchange = () => { box.checked ? hidden[key].delete(name) : hidden[key].add(name); show(); };
    label.append(box, " " + name);
    return label;
  }));
}
for (const t of ranked.filter(t => t.by >= 0)) {
  t.table.tHead.rows[0].append(Object.assign(document.createElement("th"), { textContent: "to the best" }));
  for (const row of t.rows) row.append(row.distance = document.createElement("td"));
  t.heads.forEach((h, i) => { if (h.dataset.better) h.onclick = () => { t.by = i; rank(t); }; });
}
show();
