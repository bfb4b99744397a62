// One picture: panels of a board, laid out as the board says, drawn by Grafana's own components.
// What they lack (heatmap, bar gauge, table) is drawn here, plainly.
import 'uplot/dist/uPlot.min.css';
import React, { useEffect, useRef } from 'react';
import { createRoot } from 'react-dom/client';
import { FieldType, createTheme, dateTime, formattedValueToString, getDisplayProcessor, getValueFormat, toDataFrame } from '@grafana/data';
import { BigValue, BigValueColorMode, BigValueGraphMode, TimeSeries } from '@grafana/ui';

const theme = createTheme({ colors: { mode: 'dark' } });
const { panels, range, title } = window.PICTURE;
const CELL = { w: 58, h: 38, gap: 8 };
const timeRange = { from: dateTime(range[0] * 1000), to: dateTime(range[1] * 1000), raw: { from: dateTime(range[0] * 1000), to: dateTime(range[1] * 1000) } };

const format = (value, unit, decimals) => formattedValueToString(getValueFormat(unit)(value, decimals));
const matches = (matcher, name) => (matcher.id === 'byName' ? matcher.options === name : new RegExp(`^(?:${matcher.options})$`).test(name));

function configOf(panel, name, index) {
  const { defaults, overrides } = panel.fieldConfig;
  const palette = theme.visualization.palette;
  const config = { ...defaults, custom: { ...(defaults.custom ?? {}) }, displayName: name, displayNameFromDS: name };
  if (config.color?.mode === 'palette-classic') config.color = { mode: 'fixed', fixedColor: palette[index % palette.length] };
  for (const { matcher, properties } of overrides) {
    if (!matches(matcher, name)) continue;
    for (const { id, value } of properties) {
      if (id.startsWith('custom.')) config.custom[id.slice(7)] = value;
      else config[id] = value;
    }
  }
  return config;
}

function Lines({ panel, width, height }) {
  const frames = panel.series.map((one, index) => {
    const config = configOf(panel, one.name, index);
    const field = { name: one.name, type: FieldType.number, config, values: one.values, labels: {} };
    const frame = toDataFrame({ fields: [{ name: 'Time', type: FieldType.time, config: {}, values: one.times.map((t) => t * 1000) }, field] });
    for (const f of frame.fields) f.display = getDisplayProcessor({ field: f, theme });
    return frame;
  });
  if (!frames.length) return <div className="none">no data</div>;
  const legend = { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] };
  return <TimeSeries frames={frames} width={width} height={height} timeRange={timeRange} timeZone="utc" legend={legend} />;
}

function Number({ panel, width, height }) {
  const { defaults } = panel.fieldConfig;
  const values = panel.series.flatMap((one) => (panel.options.reduceOptions.calcs[0] === 'max' ? [Math.max(...one.values)] : one.values.slice(-1)));
  let value = { text: defaults.noValue, numeric: NaN, color: theme.visualization.getColorByName('text') };
  if (values.length) {
    const display = getDisplayProcessor({ field: { type: FieldType.number, config: defaults }, theme });
    value = display(values[0]);
  }
  const mode = panel.options.colorMode === 'background' ? BigValueColorMode.Background : BigValueColorMode.Value;
  return <BigValue value={value} width={width} height={height} theme={theme} colorMode={mode} graphMode={BigValueGraphMode.None} justifyMode="center" />;
}

function Heat({ panel, width, height }) {
  const canvas = useRef(null);
  useEffect(() => {
    const pen = canvas.current.getContext('2d');
    const rows = panel.series.map((s) => ({ ...s, le: s.name === '+Inf' ? Infinity : parseFloat(s.name) })).sort((a, b) => a.le - b.le);
    const times = [...new Set(rows.flatMap((r) => r.times))].sort((a, b) => a - b);
    const cells = rows.map((row, i) => times.map((t) => {
      const at = row.times.indexOf(t);
      const below = i ? rows[i - 1].values[rows[i - 1].times.indexOf(t)] ?? 0 : 0;
      return at < 0 ? 0 : Math.max(0, row.values[at] - below);
    }));
    const used = cells.map((row, i) => (row.some((n) => n > 1e-9) ? i : -1)).filter((i) => i >= 0);
    const low = Math.max(0, Math.min(...used) - 1), high = Math.min(rows.length - 1, Math.max(...used) + 1);
    const most = Math.max(...cells.flat()), left = 62, bottom = 22, top = 8;
    const w = (width - left) / times.length, h = (height - bottom - top) / (high - low + 1);
    pen.font = '11px sans-serif';
    for (let i = low; i <= high; i++) {
      const y = height - bottom - (i - low + 1) * h;
      pen.fillStyle = '#9aa0ac';
      pen.textAlign = 'right';
      if (h > 12 || (i - low) % 2 === 0) pen.fillText(rows[i].le === Infinity ? 'more' : format(rows[i].le, 's'), left - 6, y + 4);
      cells[i].forEach((n, x) => {
        if (n <= 1e-9) return;
        const share = Math.sqrt(n / most);
        pen.fillStyle = `hsl(${230 - 200 * share}, 85%, ${38 + 20 * share}%)`;
        pen.fillRect(left + x * w, y, Math.max(1, w - 1), h - 1);
      });
    }
    pen.fillStyle = '#9aa0ac';
    pen.textAlign = 'center';
    for (let k = 1; k < 5; k++) {
      const t = times[Math.floor((k * times.length) / 5)];
      pen.fillText(new Date(t * 1000).toISOString().slice(11, 19), left + (k * (width - left)) / 5, height - 6);
    }
  }, []);
  return <canvas ref={canvas} width={width} height={height} />;
}

function Bars({ panel, width }) {
  const rows = panel.series.map((s) => [s.name, s.values.at(-1)]).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1e-9, ...rows.map((r) => r[1]));
  return (
    <div>
      {rows.map(([name, value]) => (
        <div className="bar" key={name}>
          <span>{name}</span>
          <i style={{ width: (width - 260) * (value / most) }} />
          <b>{format(value, panel.fieldConfig.defaults.unit)}</b>
        </div>
      ))}
    </div>
  );
}

const KINDS = { timeseries: Lines, stat: Number, heatmap: Heat, bargauge: Bars };

function Panel({ panel }) {
  const { x, y, w, h } = panel.gridPos;
  const box = { left: x * CELL.w, top: y * CELL.h, width: w * CELL.w - CELL.gap, height: h * CELL.h - CELL.gap };
  const Kind = KINDS[panel.type];
  return (
    <section style={box}>
      <h2>{panel.title}</h2>
      <Kind panel={panel} width={box.width - 16} height={box.height - 38} />
    </section>
  );
}

createRoot(document.getElementById('root')).render(
  <>
    <h1>{title}</h1>
    <main>{panels.map((panel) => <Panel key={panel.id} panel={panel} />)}</main>
  </>
);
