/* Draws charts and the table of silent streams under the tab "Streams" of Locust's page. */
(function () {
  "use strict";
  const base = document.currentScript.dataset.base || "";
  const colours = { completed: "#2e7d32", connecting: "#90a4ae", waiting: "#f9a825", streaming: "#2e7d32", silent: "#c62828",
    aborted: "#9e9e9e", abandoned: "#9e9e9e", error_event: "#ad1457", http_error: "#6a1b9a", stalled: "#c62828",
    truncated: "#ef6c00", cut: "#d84315", not_a_stream: "#4527a0", connect_error: "#37474f", no_response: "#5d4037",
    p50: "#2e7d32", p95: "#f9a825", p99: "#c62828", silence: "#c62828" };
  const others = ["#0277bd", "#00838f", "#558b2f", "#4e342e"];
  let box = null, last = null;

  const colour = (name, i) => colours[name] || others[i % others.length];
  const make = (space) => (tag, attrs, text) => {
    const node = document.createElementNS("http://www.w3.org/" + space, tag);
    for (const [k, v] of Object.entries(attrs || {})) node.setAttribute(k, v);
    if (text !== undefined) node.textContent = text;      // never HTML: names come from servers
    return node;
  };
  const el = make("1999/xhtml"), shape = make("2000/svg");
  const nice = (v, unit) => unit === "s" ? (v < 1 ? Math.round(v * 1000) + " ms" : v.toFixed(v < 10 ? 2 : 0) + " s")
    : v < 10 ? v.toFixed(1) : String(Math.round(v));

  function chart(title, unit, t, series) {
    const w = 560, h = 190, left = 52, bottom = 22, top = 8, right = 8;
    const holder = el("div", { style: "flex:1 1 420px;min-width:340px;max-width:760px" });
    holder.appendChild(el("h4", { style: "margin:12px 0 4px;font-weight:500" }, title));
    const svg = shape("svg", { viewBox: `0 0 ${w} ${h}`, width: "100%", role: "img", "aria-label": title });
    const peak = Math.max(1e-9, ...series.flatMap(s => s.values.filter(v => v !== null)));
    const x = i => left + (w - left - right) * (t.length < 2 ? 1 : i / (t.length - 1));
    const y = v => top + (h - top - bottom) * (1 - v / peak);
    for (const part of [0, 0.5, 1]) {
      svg.appendChild(shape("line", { x1: left, x2: w - right, y1: y(peak * part), y2: y(peak * part), stroke: "currentColor", "stroke-opacity": 0.15 }));
      svg.appendChild(shape("text", { x: left - 6, y: y(peak * part) + 4, "text-anchor": "end", "font-size": 11, fill: "currentColor" }, nice(peak * part, unit)));
    }
    for (const i of t.length > 1 ? [0, t.length - 1] : []) {
      const clock = new Date(t[i] * 1000).toLocaleTimeString();
      svg.appendChild(shape("text", { x: x(i), y: h - 6, "text-anchor": i ? "end" : "start", "font-size": 11, fill: "currentColor" }, clock));
    }
    const legend = el("div", { style: "display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px" });
    series.forEach((s, n) => {
      let path = "", pen = false;
      s.values.forEach((v, i) => { if (v === null) { pen = false; return; } path += `${pen ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`; pen = true; });
      svg.appendChild(shape("path", { d: path || "M0 0", fill: "none", stroke: colour(s.name, n), "stroke-width": 2, "stroke-linejoin": "round" }));
      const entry = el("span", {});
      entry.appendChild(el("span", { style: `display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px;background:${colour(s.name, n)}` }));
      const now = s.values.length ? s.values[s.values.length - 1] : null;
      entry.appendChild(document.createTextNode(s.name + (now === null ? "" : " " + nice(now, unit))));
      legend.appendChild(entry);
    });
    holder.append(svg, legend);
    return holder;
  }

  function silent(streams) {
    const holder = el("div", { style: "flex:1 1 100%" });
    holder.appendChild(el("h4", { style: "margin:16px 0 4px;font-weight:500" }, "Longest without output right now"));
    if (!streams.length) { holder.appendChild(el("p", { style: "opacity:.7;margin:4px 0" }, "no stream is open")); return holder; }
    const table = el("table", { style: "border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums" });
    const row = (cells, tag) => {
      const tr = el("tr");
      cells.forEach((c, i) => tr.appendChild(el(tag, { style: `padding:3px 18px 3px 0;text-align:${i > 2 ? "right" : "left"};font-weight:${tag === "th" ? 500 : 400}` }, String(c))));
      return tr;
    };
    table.appendChild(row(["request", "protocol", "phase", "no token for (s)", "no byte for (s)"], "th"));
    for (const s of streams) table.appendChild(row([s.request, s.protocol, s.phase, s.no_token_s.toFixed(1), s.no_byte_s.toFixed(1)], "td"));
    holder.appendChild(table);
    return holder;
  }

  function draw(data) {
    const t = data.samples.map(s => s.t);
    const names = pick => [...new Set(data.samples.flatMap(s => Object.keys(pick(s))))].sort();
    const lines = pick => names(pick).map(name => ({ name, values: data.samples.map(s => pick(s)[name] || 0) }));
    const fresh = el("div", { id: "harness-charts", style: "display:flex;flex-wrap:wrap;gap:8px 32px;padding:8px 4px 40px" });
    if (data.simulated) fresh.appendChild(el("p", { style: "flex:1 1 100%;margin:8px 0 0;padding:4px 10px;background:#f9a825;color:#000" },
      "SIMULATED: these numbers are played and say nothing about a real gateway"));
    if (data.validity.valid === false) fresh.appendChild(el("p", { style: "flex:1 1 100%;margin:8px 0 0;padding:4px 10px;background:#c62828;color:#fff" },
      "Run not valid: " + data.validity.reasons.join("; ")));
    fresh.appendChild(chart("Time to first token (last 2 s)", "s", t, ["p50", "p95", "p99"].map((name, i) => ({ name, values: data.samples.map(s => s.ttft[i]) }))));
    fresh.appendChild(chart("Outcomes per second", "", t, lines(s => s.outcomes)));
    fresh.appendChild(chart("Open streams", "", t, ["connecting", "waiting", "streaming", "silent"].map(name => ({ name, values: data.samples.map(s => s.open[name]) }))));
    fresh.appendChild(chart("Oldest silence", "s", t, [{ name: "silence", values: data.samples.map(s => s.silence) }]));
    fresh.appendChild(silent(data.silent));
    return fresh;
  }

  function place() {
    const here = new URLSearchParams(location.search).get("tab") === "streams";
    const table = document.querySelector(".MuiTableContainer-root");
    if (!here || !table || !last) { if (box) { box.remove(); box = null; } return; }
    const fresh = draw(last);
    if (box && box.isConnected) box.replaceWith(fresh); else table.insertAdjacentElement("afterend", fresh);
    box = fresh;
  }

  async function poll() {
    try {
      const answer = await fetch(base + "/harness/live.json", { cache: "no-store" });
      if (answer.ok) last = await answer.json();
    } catch (error) { /* the server has gone; the page says so itself */ }
    place();
  }
  setInterval(poll, 2000);
  setInterval(() => { if (last && (!box || !box.isConnected)) place(); }, 300);
  poll();
})();
