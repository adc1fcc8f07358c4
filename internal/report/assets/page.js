// Draws the charts, and shows and hides engines. Without it the page still has
// all tables.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = JSON.parse(document.getElementById("charts").textContent);
  const hidden = new Set();
  const drawn = new Map(); // element of a chart → the library's chart
  const chosen = {}; // id of a chart → variant

  const property = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (engine) => property("--" + engine) || property("--other");

  function number(v) {
    const size = Math.abs(v);
    if (size >= 1e6) return +(v / 1e6).toPrecision(3) + "M";
    if (size >= 1e4) return +(v / 1e3).toPrecision(3) + "k";
    return String(+v.toPrecision(3));
  }
  // 10 is one in ten slower: the 90th percentile.
  function percentile(v) {
    return v <= 1 ? "0 %" : +(100 * (1 - 1 / v)).toPrecision(Math.max(2, Math.ceil(Math.log10(v)) + 2)) + " %";
  }
  const format = (a) => (a.share ? percentile : number);

  function axis(a, place, width) {
    const line = property("--line"), muted = property("--muted");
    const category = Boolean(a.labels), x = place === "x";
    const o = {
      name: a.name, nameLocation: x ? "middle" : "end", nameGap: x ? 30 : 15, min: a.min,
      type: category ? "category" : a.log ? "log" : "value", data: a.labels,
      nameTextStyle: { color: muted, align: x ? "center" : "left" },
      axisLine: { lineStyle: { color: line } },
      splitLine: { show: !category, lineStyle: { color: line, opacity: 0.6 } },
      axisLabel: { color: muted, show: true, hideOverlap: true, formatter: category ? undefined : format(a) },
    };
    if (category && x) {
      const letters = a.labels.reduce((n, s) => Math.max(n, s.length), 0);
      const crowded = letters * 7 * a.labels.length > width;
      Object.assign(o.axisLabel, { interval: 0, rotate: crowded ? 45 : 0, hideOverlap: false, width: 130, overflow: "truncate" });
    }
    return o;
  }

  // Each series gets its engine's colour, and is left out when the engine is.
  function series(s) {
    const c = s.engine ? colour(s.engine) : property("--muted"), faint = s.faint;
    const o = { name: s.name, type: s.values ? "bar" : "line", itemStyle: { color: c, opacity: faint ? 0.45 : 1 } };
    if (s.values) return { ...o, stack: s.stack, data: s.values.map((v) => v ?? "-") };
    o.data = s.points;
    Object.assign(o, { symbol: s.symbol || "none", symbolSize: 6, showSymbol: Boolean(s.symbol), lineStyle: { type: faint ? "dotted" : "solid", width: 2, color: c, opacity: faint ? 0.6 : 1 } });
    if (s.below) Object.assign(o, { xAxisIndex: 1, yAxisIndex: 1 });
    if (s.marks) {
      o.markLine = {
        silent: true, symbol: ["none", "none"], data: s.marks, lineStyle: { type: "dotted", width: 1, color: property("--muted") },
        label: { show: Boolean(s.marks[0].name), formatter: "{b}", position: "insideEndTop", fontSize: 10, color: property("--muted") },
      };
    }
    return o;
  }

  // Labels of different lengths would shift one diagram against the other.
  function grids(v) {
    const one = { left: 8, right: 24, top: 56, bottom: v.x.name ? 36 : 8, containLabel: true };
    if (!v.below) return [one];
    return [{ left: 56, right: 24, top: 56, bottom: "40%" }, { left: 56, right: 24, top: "70%", bottom: 48 }];
  }

  function option(id, width) {
    const v = all[id][chosen[id] || 0];
    const shown = v.series.filter((s) => !hidden.has(s.engine));
    const fg = property("--fg"), muted = property("--muted");
    const o = { animation: false, grid: grids(v), xAxis: [axis(v.x, "x", width)], yAxis: [axis(v.y, "y", width)], series: shown.map(series) };
    // A limit has a point that cannot be seen, so that the axes reach it.
    if (shown.length) (v.limits || []).forEach((m) => {
      const [x, y] = shown[0].points[0];
      o.series.push(series({ name: m.name, points: [[m.xAxis ?? x, m.yAxis ?? y]], marks: [m] }));
    });
    if (v.below) {
      o.xAxis.push({ ...axis(v.x, "x", width), gridIndex: 1 });
      o.yAxis.push({ ...axis(v.below, "y", width), gridIndex: 1, splitNumber: 2 });
      o.xAxis[0].name = ""; // that of the diagram below says it
      o.xAxis[0].axisLabel.color = "transparent";
    }
    o.textStyle = { fontFamily: "system-ui, sans-serif" };
    o.legend = { show: true, type: "scroll", top: 0, textStyle: { color: fg }, pageTextStyle: { color: muted }, pageIconColor: fg, pageIconInactiveColor: muted,
      data: [...new Set(shown.map((s) => s.name))] };
    o.tooltip = { show: true, confine: true, trigger: v.x.labels ? "axis" : "item", // all series at once need common x values
      backgroundColor: property("--bg"), borderColor: property("--line"), textStyle: { color: fg, fontSize: 12 } };
    if (v.x.labels) o.tooltip.valueFormatter = (n) => (typeof n === "number" ? number(n) : "–");
    else o.tooltip.formatter = (p) => `${p.marker}${echarts.format.encodeHTML(p.seriesName)}<br>` + [p.value].flat().map((n, i) =>
      typeof n === "number" ? format(i ? v.y : v.x)(n) : n).join(" → ");
    return o;
  }

  function draw(box, size) {
    if (box.closest("[hidden]") || !box.clientWidth) return;
    let chart = drawn.get(box);
    if (!chart) {
      chart = echarts.init(box, null, { renderer: "svg" });
      drawn.set(box, chart);
    }
    const { label } = all[box.dataset.chart][chosen[box.dataset.chart] || 0];
    if (label) box.parentElement.querySelector("figcaption").dataset.variant = label; // for paper
    chart.resize(size);
    chart.setOption(option(box.dataset.chart, chart.getWidth()), { notMerge: true });
  }

  const boxes = [...document.querySelectorAll(".chart")];
  // After a change what can be seen is drawn again, the rest when it comes into
  // view; on paper everything is.
  const near = new Set(), stale = new Set();
  const observer = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
    if (!isIntersecting) return near.delete(target);
    near.add(target);
    if (stale.delete(target)) draw(target);
  }), { rootMargin: "300px" });
  const redraw = () => boxes.forEach((box) => (near.has(box) ? draw(box) : stale.add(box)));
  const redrawAll = (size) => boxes.forEach((box) => draw(box, size));

  document.querySelectorAll("select[data-chart]").forEach((select) => {
    chosen[select.dataset.chart] = Number(select.value); // browsers keep it over a reload
    select.addEventListener("change", () => {
      chosen[select.dataset.chart] = Number(select.value);
      draw(document.querySelector(`.chart[data-chart="${select.dataset.chart}"]`));
    });
  });

  document.querySelectorAll("[data-filter]").forEach((button) => {
    button.addEventListener("click", () => {
      const engine = button.dataset.filter;
      const show = hidden.delete(engine);
      if (!show) hidden.add(engine);
      button.setAttribute("aria-pressed", String(show));
      document.querySelectorAll(`[data-engine="${CSS.escape(engine)}"]`).forEach((e) => { e.hidden = !show; });
      redraw();
    });
  });

  // A few at a time, so that the page can be read meanwhile.
  let next = 0;
  function some() {
    const until = performance.now() + 30;
    while (next < boxes.length && performance.now() < until) draw(boxes[next++]);
    if (next < boxes.length) setTimeout(some);
    else {
      boxes.forEach((box) => observer.observe(box));
      watch();
      root.dataset.drawn = "true";
    }
  }
  let pending;
  function watch() {
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth === width) return; // the bars of a phone's browser
      width = window.innerWidth;
      clearTimeout(pending);
      pending = setTimeout(redraw, 100);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }
  // On paper: dark on light, and no wider than it; all of it only when asked for.
  document.getElementById("print").addEventListener("click", () => {
    root.classList.add("all");
    window.print();
  });
  window.addEventListener("beforeprint", () => {
    root.classList.add("print");
    if (root.classList.contains("all")) redrawAll({ width: 660, height: 330 });
  });
  window.addEventListener("afterprint", () => {
    const all = root.classList.contains("all");
    root.classList.remove("print", "all");
    if (all) redrawAll({ width: "auto", height: "auto" });
  });
  some();
})();
