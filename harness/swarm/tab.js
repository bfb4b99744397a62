/* Draws charts, the workers and the silent streams under the tab "Streams" of Locust's page. */
(function () {
  "use strict";
  const base = document.currentScript.dataset.base || "";
  // Of one brightness, so that they can be told from a white and from a black page.
  const colours = { completed: "#43a047", connecting: "#8e9aa3", waiting: "#fb9a06", streaming: "#43a047", silent: "#e53935",
    aborted: "#9e9e9e", abandoned: "#9e9e9e", error_event: "#d81b8c", http_error: "#8e4ec6", stalled: "#e53935",
    truncated: "#fb9a06", cut: "#a1662f", not_a_stream: "#5c6bc0", connect_error: "#607d8b", no_response: "#8d6e63",
    p50: "#43a047", p95: "#fb9a06", p99: "#e53935", silence: "#e53935" };
  const others = ["#1e88e5", "#00a3a3", "#7cb342", "#9575cd"];
  let box = null, last = null;

  const colour = (name, i) => colours[name] || others[i % others.length];
  const make = (space) => (tag, attrs, text) => {
    const node = document.createElementNS("http://www.w3.org/" + space, tag);
    for (const [k, v] of Object.entries(attrs || {})) node.setAttribute(k, v);
    if (text !== undefined) node.textContent = text;      // never HTML: names come from servers
    return node;
  };
  const el = make("1999/xhtml"), shape = make("2000/svg");
  const wide = "grid-column:1/-1;";
  const nice = (v, unit) => v === 0 ? "0" : unit === "s" ? (v < 1 ? Math.round(v * 1000) + " ms" : v.toFixed(v < 10 ? 2 : 0) + " s")
    : v < 10 ? v.toFixed(1) : String(Math.round(v));
  // The next of 1, 2, 5, 10 … above a value: an axis that people can read, and that does not jump at each sample.
  const round = (v) => { const p = 10 ** Math.floor(Math.log10(v)); return [1, 2, 5, 10].map(f => f * p).find(b => b >= v * 0.999); };

  function chart(title, unit, t, series) {
    const w = 560, h = 190, left = 56, bottom = 22, top = 10, right = 10;
    const holder = el("div", { class: "harness-chart" });
    holder.appendChild(el("h4", { style: "margin:12px 0 4px;font-weight:500" }, title));
    const svg = shape("svg", { viewBox: `0 0 ${w} ${h}`, width: "100%", role: "img", "aria-label": title, style: "display:block" });
    const most = Math.max(0, ...series.flatMap(s => s.values.filter(v => v !== null)));
    const peak = most > 0 ? round(most) : 1;
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
    const legend = el("div", { style: "display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px;min-height:18px" });
    series.forEach((s, n) => {
      let path = "", pen = false;
      s.values.forEach((v, i) => { if (v === null) { pen = false; return; } path += `${pen ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`; pen = true; });
      svg.appendChild(shape("path", { d: path || "M0 0", fill: "none", stroke: colour(s.name, n), "stroke-width": 2, "stroke-linejoin": "round", "stroke-linecap": "round" }));
      const entry = el("span", { style: "white-space:nowrap" });
      entry.appendChild(el("span", { style: `display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px;background:${colour(s.name, n)}` }));
      const now = s.values.length ? s.values[s.values.length - 1] : null;
      entry.appendChild(document.createTextNode(s.name.replaceAll("_", " ") + (now === null ? "" : " " + nice(now, unit))));
      legend.appendChild(entry);
    });
    holder.append(svg, legend);
    return holder;
  }

  function table(id, title, head, rows, firstNumber, nothing) {
    const holder = el("div", { id, style: wide + "overflow-x:auto" });
    holder.appendChild(el("h4", { style: "margin:16px 0 4px;font-weight:500" }, title));
    if (!rows.length) { holder.appendChild(el("p", { style: "opacity:.7;margin:4px 0" }, nothing)); return holder; }
    const grid = el("table", { style: "border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums" });
    const row = (cells, tag) => {
      const tr = el("tr");
      cells.forEach((c, i) => tr.appendChild(el(tag, { style: `padding:3px 22px 3px 0;white-space:nowrap;text-align:${i >= firstNumber ? "right" : "left"};font-weight:${tag === "th" ? 500 : 400}` }, c === null ? "–" : String(c))));
      return tr;
    };
    grid.appendChild(row(head, "th"));
    for (const cells of rows) grid.appendChild(row(cells, "td"));
    holder.appendChild(grid);
    return holder;
  }

  // The page's own table is made for a few narrow columns; ours has many, and some of words.
  const css = el("style", {}, `
    .harness-here .MuiTableContainer-root th, .harness-here .MuiTableContainer-root td { padding:8px 8px; font-size:13px; line-height:1.35; font-variant-numeric:tabular-nums; vertical-align:top }
    .harness-here .MuiTableContainer-root th { font-weight:500; vertical-align:bottom }
    .harness-here .MuiTableContainer-root td:nth-child(-n+9) { white-space:nowrap }
    .harness-here .MuiTableContainer-root td:nth-child(n+10):nth-child(-n+12) { min-width:120px }`);
  document.head.appendChild(css);

  const banner = (id, text, back, front) => el("p", { id, style: wide + `margin:8px 0 0;padding:4px 10px;border-radius:4px;background:${back};color:${front}` }, text);

  function draw(data) {
    const t = data.samples.map(s => s.t);
    const names = pick => [...new Set(data.samples.flatMap(s => Object.keys(pick(s))))].sort();
    const lines = pick => names(pick).map(name => ({ name, values: data.samples.map(s => pick(s)[name] || 0) }));
    const fresh = el("div", { id: "harness-charts", style: "display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,520px),1fr));gap:8px 40px;padding:8px 4px 40px;max-width:1500px" });
    if (data.simulated) fresh.appendChild(banner("harness-simulated", `SIMULATED (${data.gateway}): these numbers are played and say nothing about a real gateway`, "#f9a825", "#000"));
    if (data.validity.valid === false) fresh.appendChild(banner("harness-invalid", "Run not valid: " + data.validity.reasons.join("; "), "#c62828", "#fff"));
    fresh.appendChild(chart("Time to first token (last 2 s)", "s", t, ["p50", "p95", "p99"].map((name, i) => ({ name, values: data.samples.map(s => s.ttft[i]) }))));
    fresh.appendChild(chart("Outcomes per second", "", t, lines(s => s.outcomes)));
    fresh.appendChild(chart("Open streams", "", t, ["connecting", "waiting", "streaming", "silent"].map(name => ({ name, values: data.samples.map(s => s.open[name]) }))));
    fresh.appendChild(chart("Oldest silence", "s", t, [{ name: "silence", values: data.samples.map(s => s.silence) }]));
    const many = data.workers.length > 0;
    if (many) fresh.appendChild(table("harness-workers", "Workers", ["worker", "state", "missed at", "users", "last report (s ago)"],
      data.workers.map(w => [w.name, w.state, w.missed_at, w.users, w.report_age_s === null ? null : w.report_age_s.toFixed(1)]), 3, ""));
    const where = many ? s => [s.request, s.worker, s.protocol, s.phase] : s => [s.request, s.protocol, s.phase];
    fresh.appendChild(table("harness-silent", "Longest without output right now",
      [...(many ? ["request", "worker"] : ["request"]), "protocol", "phase", "no token for (s)", "no byte for (s)"],
      data.silent.map(s => [...where(s), s.no_token_s.toFixed(1), s.no_byte_s.toFixed(1)]), many ? 4 : 3, "no stream is open"));
    return fresh;
  }

  function place() {
    const here = new URLSearchParams(location.search).get("tab") === "streams";
    const rows = document.querySelector(".MuiTableContainer-root");
    document.body.classList.toggle("harness-here", here);
    if (!here || !rows || !last) { if (box) { box.remove(); box = null; } return; }
    const fresh = draw(last);
    if (box && box.isConnected) box.replaceWith(fresh); else rows.insertAdjacentElement("afterend", fresh);
    box = fresh;
  }

  async function poll() {
    try {
      const answer = await fetch(base + "/harness/live.json", { cache: "no-store" });
      if (answer.ok && !answer.redirected) last = await answer.json();
    } catch (error) { /* the server has gone; the page says so itself */ }
    place();
  }
  setInterval(poll, 2000);
  // The page draws its tabs anew as it likes: put ours back, and take it away where it does not belong.
  setInterval(() => { if (last && (!box || !box.isConnected || new URLSearchParams(location.search).get("tab") !== "streams")) place(); }, 300);
  poll();
})();

/* Under open arrivals each of Locust's users offers one request per second: the form says so. */
(function () {
  "use strict";
  const words = { "Number of users (peak concurrency)": "Requests per second (peak)",
    "Ramp up (users started/second)": "Ramp up (requests per second, each second)" };
  const back = Object.fromEntries(Object.entries(words).map(([users, requests]) => [requests, users]));
  const given = ((window.templateArgs || {}).extraOptions || {}).arrivals;
  let arrivals = given ? given.defaultValue : "closed";

  function relabel() {
    const select = document.querySelector('select[name="arrivals"]');  // a run under way is edited without it
    if (select) arrivals = select.value;
    const swap = arrivals === "poisson" || arrivals === "constant" ? words : back;
    for (const label of document.querySelectorAll("label, legend span")) {  // the legend is the gap in the frame
      const text = label.firstChild;
      if (!text || text.nodeType !== Node.TEXT_NODE) continue;
      const found = Object.keys(swap).find(words => text.data.startsWith(words));
      if (found) text.data = swap[found] + text.data.slice(found.length);
    }
  }
  setInterval(relabel, 300);
})();
