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
  const formats = { number, percentile };

  function axis(a, format, width) {
    const line = property("--line"), muted = property("--muted");
    Object.assign(a, {
      nameTextStyle: { color: muted, align: a.nameLocation === "end" ? "left" : "center" },
      axisLine: { lineStyle: { color: line } },
      splitLine: { show: a.type !== "category", lineStyle: { color: line, opacity: 0.6 } },
      minorSplitLine: { show: false },
    });
    a.axisLabel = { color: muted, ...a.axisLabel, show: true, formatter: formats[format] };
    if (a.type === "category") {
      a.axisLabel.formatter = undefined;
      const letters = (a.data || []).reduce((n, s) => Math.max(n, s.length), 0);
      if (a.nameLocation === "middle") {
        const crowded = letters * 7 * a.data.length > width;
        Object.assign(a.axisLabel, { interval: 0, rotate: crowded ? 45 : 0, hideOverlap: false, width: 130, overflow: "truncate" });
      }
    }
  }

  // Each series gets its engine's colour, and is left out when the engine is.
  function series(variant) {
    const muted = property("--muted");
    return variant.option.series.map((s, i) => ({ s: structuredClone(s), tag: variant.series[i] || {} }))
      .filter(({ tag }) => !hidden.has(tag.engine))
      .map(({ s, tag }) => {
        const c = tag.engine ? colour(tag.engine) : muted;
        s.itemStyle = { ...s.itemStyle, color: c, opacity: tag.role === "second" ? 0.45 : 1 };
        if (s.type === "line") s.lineStyle = { ...s.lineStyle, color: c, opacity: tag.role === "second" ? 0.6 : 1 };
        if (s.markLine) {
          s.markLine.silent = true;
          s.markLine.lineStyle = { ...s.markLine.lineStyle, color: muted };
          s.markLine.label = { ...s.markLine.label, color: muted };
        }
        return s;
      });
  }

  function option(id, width) {
    const variant = all[id][chosen[id] || 0];
    const o = structuredClone(variant.option);
    o.series = series(variant);
    const limits = variant.option.series.filter((s, i) => (variant.series[i] || {}).role === "limit").map((s) => s.name);
    o.xAxis.forEach((a) => axis(a, variant.x, width));
    o.yAxis.forEach((a) => axis(a, variant.y, width));
    const fg = property("--fg"), muted = property("--muted");
    o.textStyle = { fontFamily: "system-ui, sans-serif" };
    o.legend = { ...o.legend, textStyle: { color: fg }, pageTextStyle: { color: muted }, pageIconColor: fg, pageIconInactiveColor: muted,
      data: [...new Set(o.series.map((s) => s.name).filter((name) => !limits.includes(name)))] };
    o.tooltip = { ...o.tooltip, confine: true, backgroundColor: property("--bg"), borderColor: property("--line"), textStyle: { color: fg, fontSize: 12 } };
    if (o.tooltip.trigger === "axis") o.tooltip.valueFormatter = (v) => (typeof v === "number" ? number(v) : "–");
    else o.tooltip.formatter = (p) => `${p.marker}${echarts.format.encodeHTML(p.seriesName)}<br>` + [p.value].flat().map((v, i) =>
      typeof v === "number" ? (formats[i ? variant.y : variant.x] || number)(v) : v).join(" → ");
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
  // On paper: dark on light, and no wider than it.
  window.addEventListener("beforeprint", () => {
    root.classList.add("print");
    redrawAll({ width: 660, height: 330 });
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("print");
    redrawAll({ width: "auto", height: "auto" });
  });
  some();
})();
