// The report's charts and tables. The data is the page's JSON (study.schema.json); Chart.js draws.
//
// With #check in the address the page examines itself once all is drawn: <html data-check="ok"> if no error
// was reported and every chart has content, else what is wrong.
"use strict";
(() => {
const problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("securitypolicyviolation", (event) => problems.push("refused: " + event.blockedURI));

const study = JSON.parse(document.getElementById("study").textContent);
const charts = [];
let colours;

// Okabe and Ito's colours, which people with any kind of colour vision can tell apart; lighter ones on dark.
const kLight = ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#b58900", "#56b4e9", "#555555"];
const kDark = ["#5cb3f0", "#ff9a56", "#33cda0", "#e79bcb", "#f0cf5a", "#a5d8f7", "#bbbbbb"];
// Second sign beside colour: devices differ in colour, precisions in marker and dash.
const kMarkers = ["circle", "triangle", "rect", "rectRot", "star", "crossRot"];
const kDashes = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4], [1, 2]];

function readColours(printing) {
  const style = getComputedStyle(document.documentElement);
  const dark = !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  const of = (name, onPaper) => printing ? onPaper : style.getPropertyValue(name).trim();
  colours = {
    series: dark ? kDark : kLight,
    text: of("--text", "#000000"), faint: of("--faint", "#444a52"), line: of("--line", "#c4c9d0"),
    background: of("--background", "#ffffff"),
    parts: dark ? ["#5cb3f0", "#ff9a56", "#f0cf5a", "#e79bcb"] : ["#0072b2", "#d55e00", "#e8b923", "#aa4499"],
  };
  Chart.defaults.color = colours.text;
  Chart.defaults.borderColor = colours.line;
}

const isPeer = (device) => !device.predicted && device.program !== "" && !device.program.startsWith("librt");
const deviceName = (device) =>
    (isPeer(device) && !device.id.includes(device.program) ? device.program + " on " + device.id : device.id) +
    (device.predicted ? " (predicted)" : "");
const seriesName = (series) => deviceName(study.devices[series.device]) + " " + series.precision;
const precisions = [...new Set(study.series.map((series) => series.precision))];
const good = (series) => series.points.filter((point) => point.error === "");
const ofMode = (mode) => study.series.filter((series) => series.mode === mode && good(series).length > 0);
const colourOf = (series) => colours.series[series.device % colours.series.length];

function digits(value) {
  if (value === null || !Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e7 || size < 1e-3) return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
  return size >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}
function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return digits(value) + " " + units[unit];
}
const shortened = (text, most) => text.length > most ? text.slice(0, most - 1) + "\u2026" : text;

// --- marks that Chart.js has no type for ---

/** Whiskers of 95 % intervals, from points with `low` and `high`. */
const whiskers = {
  id: "whiskers",
  beforeDatasetsDraw(chart) {
    const {ctx, scales: {y}} = chart;
    chart.data.datasets.forEach((dataset, index) => {
      if (!chart.isDatasetVisible(index)) return;
      chart.getDatasetMeta(index).data.forEach((element, i) => {
        const {low, high} = dataset.data[i] ?? {};
        if (!(low > 0) || !(high > 0)) return;
        const top = y.getPixelForValue(high), bottom = y.getPixelForValue(low), half = 4;
        if (bottom - top < 3) return;  // within the marker
        ctx.save();
        ctx.strokeStyle = dataset.borderColor;
        ctx.lineWidth = 1.2;
        ctx.beginPath();
        ctx.moveTo(element.x, top); ctx.lineTo(element.x, bottom);
        ctx.moveTo(element.x - half, top); ctx.lineTo(element.x + half, top);
        ctx.moveTo(element.x - half, bottom); ctx.lineTo(element.x + half, bottom);
        ctx.stroke();
        ctx.restore();
      });
    });
  },
};

/** Rings around points with `knee`: full where throughput has flattened, dashed where it may grow further. */
const rings = {
  id: "rings",
  afterDatasetsDraw(chart) {
    const {ctx} = chart;
    chart.data.datasets.forEach((dataset, index) => {
      if (!chart.isDatasetVisible(index)) return;
      chart.getDatasetMeta(index).data.forEach((element, i) => {
        const knee = dataset.data[i]?.knee;
        if (!knee) return;
        ctx.save();
        ctx.strokeStyle = dataset.borderColor;
        ctx.lineWidth = 1.8;
        ctx.setLineDash(knee.reached ? [] : [3, 2.5]);
        ctx.beginPath();
        ctx.arc(element.x, element.y, 9, 0, 2 * Math.PI);
        ctx.stroke();
        ctx.restore();
      });
    });
  },
};

/** Numbered squares at options.marks: {x, y, label}. */
const badges = {
  id: "badges",
  afterDatasetsDraw(chart, _, options) {
    const {ctx, scales: {x, y}} = chart;
    for (const mark of options.marks ?? []) {
      const left = x.getPixelForValue(mark.x), top = y.getPixelForValue(mark.y), half = 8;
      ctx.save();
      ctx.fillStyle = colours.background;
      ctx.strokeStyle = colours.text;
      ctx.lineWidth = 1.2;
      ctx.fillRect(left - half, top - half, 2 * half, 2 * half);
      ctx.strokeRect(left - half, top - half, 2 * half, 2 * half);
      ctx.fillStyle = colours.text;
      ctx.font = "bold 11px sans-serif";
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillText(mark.label, left, top + .5);
      ctx.restore();
    }
  },
};

/** Texts beside points with `label`. */
const labels = {
  id: "labels",
  afterDatasetsDraw(chart) {
    const {ctx} = chart;
    chart.data.datasets.forEach((dataset, index) => {
      if (!chart.isDatasetVisible(index)) return;
      chart.getDatasetMeta(index).data.forEach((element, i) => {
        const label = dataset.data[i]?.label;
        if (!label) return;
        ctx.save();
        ctx.fillStyle = colours.faint;
        ctx.font = "11px sans-serif";
        ctx.textBaseline = "bottom";
        ctx.fillText(label, element.x + 6, element.y - 3);
        ctx.restore();
      });
    });
  },
};

// --- scales ---

const title = (text) => ({display: true, text, color: colours.faint});

/** Powers of two, at the batches that were measured. */
function batchScale(all) {
  const batches = [...new Set(all.flatMap((series) => good(series).map((point) => point.batch)))].sort((a, b) => a - b);
  const first = batches[0] ?? 1, last = batches.at(-1) ?? 1;
  // Of many, those that are twice the one before.
  const shown = batches.filter((batch, i) => i === 0 || Number.isInteger(Math.log2(batch / first)) || batches.length < 8);
  return {
    type: "logarithmic", bounds: "data", min: first / 1.15, max: last * 1.15, title: title("batch size"),
    grid: {color: colours.line, drawBorder: false},
    ticks: {color: colours.faint, callback: (value) => String(value), autoSkip: false, maxRotation: 0},
    afterBuildTicks: (scale) => { scale.ticks = shown.map((value) => ({value})); },
  };
}

/** Logarithmic, with ticks at 1, 2 and 5 times powers of ten (powers alone over many decades), and room. */
function logScale(text, format = digits, room = 1.3) {
  return {
    type: "logarithmic", bounds: "data", title: title(text), grid: {color: colours.line, drawBorder: false},
    ticks: {color: colours.faint, callback: format, autoSkip: false},
    afterDataLimits: (scale) => {
      if (scale.axis === "y")  // intervals are part of the picture
        for (const {low, high} of scale.chart.data.datasets.flatMap((dataset) => dataset.data)) {
          if (low > 0) scale.min = Math.min(scale.min, low);
          if (high > 0) scale.max = Math.max(scale.max, high);
        }
      scale.min /= room;
      scale.max *= room;
    },
    afterBuildTicks: (scale) => {
      const ticks = [], decades = Math.log10(scale.max / scale.min);
      for (let power = Math.floor(Math.log10(scale.min)); power <= Math.log10(scale.max); ++power)
        for (const step of decades > 3.5 ? [1] : [1, 2, 5]) {
          const value = step * 10 ** power;
          if (value >= scale.min && value <= scale.max) ticks.push({value: Number(value.toPrecision(6))});
        }
      scale.ticks = ticks.length > 0 ? ticks : [{value: scale.min}, {value: scale.max}];
    },
  };
}

function linearScale(text, format = digits, more = {}) {
  return {
    type: "linear", beginAtZero: true, title: title(text), grid: {color: colours.line, drawBorder: false},
    ticks: {color: colours.faint, callback: format}, ...more,
  };
}

const categories = (more = {}) =>
    ({type: "category", grid: {display: false}, ticks: {color: colours.text, autoSkip: false}, ...more});

// --- datasets ---

function lineOf(series, points) {
  const precision = precisions.indexOf(series.precision);
  return {
    label: seriesName(series), data: points, borderColor: colourOf(series), backgroundColor: colourOf(series),
    pointStyle: kMarkers[precision % kMarkers.length], borderDash: kDashes[precision % kDashes.length],
    pointRadius: 4, pointHoverRadius: 6, borderWidth: 2, showLine: true, tension: 0,
  };
}

const kneeAt = (series, point) => series.knee && series.knee.batch === point.batch ? series.knee : undefined;

function options(scales, tooltip, plugins = {}) {
  return {
    responsive: true, maintainAspectRatio: false, animation: false,
    devicePixelRatio: Math.max(2, devicePixelRatio),
    interaction: {mode: "nearest", intersect: true},
    layout: {padding: {top: 4, right: 12}},
    scales,
    plugins: {
      legend: {position: "bottom", labels: {usePointStyle: true, boxWidth: 8, boxHeight: 7, color: colours.text, padding: 10}},
      tooltip: {callbacks: {label: tooltip}},
      ...plugins,
    },
  };
}

/** The point of a line at x: linear between its neighbours, both axes logarithmic. */
function valueAt(points, x) {
  for (let i = 1; i < points.length; ++i) {
    const a = points[i - 1], b = points[i];
    if (x < a.x || x > b.x) continue;
    const share = b.x === a.x ? 0 : Math.log(x / a.x) / Math.log(b.x / a.x);
    return Math.exp(Math.log(a.y) + share * Math.log(b.y / a.y));
  }
  return undefined;
}

const ratePoints = (series) => good(series).map((point) => ({
  x: point.batch, y: point.samples_per_second, low: point.samples_interval.low, high: point.samples_interval.high,
  knee: kneeAt(series, point),
}));

// --- the charts, by their data-chart ---

const kinds = {
  throughput(mode) {
    const all = ofMode(mode);
    const marks = [];
    let number = 0;
    for (const crossover of study.crossovers) {
      if (study.series[crossover.below].mode !== mode || crossover.kind !== "crosses") continue;
      ++number;
      const y = valueAt(ratePoints(study.series[crossover.above]), crossover.estimate);
      if (y !== undefined) marks.push({x: crossover.estimate, y, label: String(number)});
    }
    return {
      type: "line", data: {datasets: all.map((series) => lineOf(series, ratePoints(series)))},
      options: options(
          {x: batchScale(all), y: logScale("samples per second")},
          (item) => `${item.dataset.label}, batch ${item.raw.x}: ${digits(item.raw.y)} samples/s ` +
              `(${digits(item.raw.low)} to ${digits(item.raw.high)})`,
          {badges: {marks}}),
      plugins: [whiskers, rings, badges],
    };
  },

  latency(mode) {
    const all = ofMode(mode);
    const points = (series) => good(series).map((point) => ({
      x: point.batch, y: point.timing.median_ms, low: point.timing.interval_ms.low,
      high: point.timing.interval_ms.high, knee: kneeAt(series, point),
    }));
    return {
      type: "line", data: {datasets: all.map((series) => lineOf(series, points(series)))},
      options: options(
          {x: batchScale(all), y: logScale("milliseconds")},
          (item) => `${item.dataset.label}, batch ${item.raw.x}: ${digits(item.raw.y)} ms ` +
              `(${digits(item.raw.low)} to ${digits(item.raw.high)})`),
      plugins: [whiskers, rings],
    };
  },

  pareto(mode) {
    const all = ofMode(mode);
    const point = (series, p) => ({x: p.timing.median_ms, y: p.samples_per_second, batch: p.batch});
    const front = (mode === "infer" ? study.pareto_infer : study.pareto_train)
                      .map((at) => point(null, study.series[at.series].points[at.point]));
    front.forEach((at) => { at.label = String(at.batch); });
    return {
      type: "line",
      data: {datasets: [
        ...all.map((series) => ({...lineOf(series, good(series).map((p) => point(series, p))), showLine: false})),
        {label: "Pareto front", data: front, borderColor: colours.faint, backgroundColor: "transparent", borderWidth: 1.5,
         pointStyle: "line", pointRadius: 0, pointHitRadius: 0, showLine: true, order: 9},
      ]},
      options: options(
          {x: logScale("milliseconds of a run"), y: logScale("samples per second")},
          (item) => `${item.dataset.label}, batch ${item.raw.batch}: ${digits(item.raw.x)} ms, ${digits(item.raw.y)} samples/s`),
      plugins: [labels],
    };
  },

  energy(mode) {
    const of = (series) => good(series).filter((point) => point.energy.joules_per_sample !== null);
    const all = ofMode(mode).filter((series) => of(series).length > 0);
    return {
      type: "line",
      data: {datasets: all.map((series) =>
          lineOf(series, of(series).map((point) => ({x: point.batch, y: point.energy.joules_per_sample, watts: point.energy.watts}))))},
      options: options(
          {x: batchScale(all), y: logScale("joules per sample")},
          (item) => `${item.dataset.label}, batch ${item.raw.x}: ${digits(item.raw.y)} J, ${digits(item.raw.watts)} W`),
    };
  },

  cost(mode) {
    const of = (series) => good(series).filter((point) => point.cost.per_million_samples !== null);
    const all = ofMode(mode).filter((series) => of(series).length > 0);
    return {
      type: "line",
      data: {datasets: all.map((series) =>
          lineOf(series, of(series).map((point) => ({x: point.batch, y: point.cost.per_million_samples}))))},
      options: options({x: batchScale(all), y: logScale("cost of a million samples, in the prices' unit")},
                       (item) => `${item.dataset.label}, batch ${item.raw.x}: ${digits(item.raw.y)}`),
    };
  },

  parts() {
    const rows = profiles();
    const parts = [["kernels", "kernels_ms"], ["transfers", "transfers_ms"], ["launches", "launches_ms"], ["waiting for data", "waiting_ms"]];
    return {
      type: "bar", rows: rows.length,
      data: {
        labels: rows.map((row) => row.label),
        datasets: parts.map(([label, field], i) => ({
          label, backgroundColor: colours.parts[i], borderColor: colours.background, borderWidth: 1,
          data: rows.map(({profile}) => profile.total_ms > 0 ? 100 * profile[field] / profile.total_ms : 0),
          milliseconds: rows.map(({profile}) => profile[field]),
        })),
      },
      options: {
        ...options({x: linearScale("% of the time of a run", digits, {stacked: true, max: 100}), y: categories({stacked: true})},
                   (item) => `${item.dataset.label}: ${digits(item.raw)} %, ${digits(item.dataset.milliseconds[item.dataIndex])} ms`),
        indexAxis: "y",
      },
    };
  },

  nodes() {
    const rows = profiles();
    const sums = rows.map(({profile}) => {
      const sum = new Map();
      for (const node of profile.nodes) sum.set(node.name, (sum.get(node.name) ?? 0) + node.milliseconds);
      return sum;
    });
    const totals = sums.map((sum) => [...sum.values()].reduce((a, b) => a + b, 0));
    const most = new Map();
    sums.forEach((sum, i) => sum.forEach((ms, name) => most.set(name, Math.max(most.get(name) ?? 0, ms / (totals[i] || 1)))));
    const names = [...most].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([name]) => name);
    const hues = colours.series.slice(0, 6);
    // Twelve nodes: six colours, each plain and hatched.
    const datasets = names.map((name, i) => ({
      label: shortened(name, 40), backgroundColor: i < 6 ? hues[i] : hatched(hues[i - 6]), borderColor: colours.background, borderWidth: 1,
      data: sums.map((sum, k) => totals[k] > 0 ? 100 * (sum.get(name) ?? 0) / totals[k] : 0),
      milliseconds: sums.map((sum) => sum.get(name) ?? 0),
    }));
    if (most.size > names.length)
      datasets.push({
        label: `other nodes (${most.size - names.length})`, backgroundColor: colours.line, borderColor: colours.background, borderWidth: 1,
        data: sums.map((sum, k) => totals[k] > 0 ? 100 - names.reduce((a, name) => a + 100 * (sum.get(name) ?? 0) / totals[k], 0) : 0),
        milliseconds: sums.map((sum, k) => totals[k] - names.reduce((a, name) => a + (sum.get(name) ?? 0), 0)),
      });
    const result = {
      type: "bar", rows: rows.length + 3,
      data: {labels: rows.map((row) => row.label), datasets},
      options: {
        ...options({x: linearScale("% of the time within nodes", digits, {stacked: true, max: 100}), y: categories({stacked: true})},
                   (item) => `${item.dataset.label}: ${digits(item.raw)} %, ${digits(item.dataset.milliseconds[item.dataIndex])} ms`),
        indexAxis: "y",
      },
    };
    result.options.plugins.legend.labels = {boxWidth: 28, boxHeight: 9, color: colours.text, padding: 8};
    return result;
  },

  roofline() {
    const nodes = [], runs = [];
    for (const [index, device] of study.devices.entries()) {
      const own = study.series.filter((series) => series.device === index && good(series).length > 0);
      const series = own.find((one) => one.precision === "fp32" && one.mode === "infer") ??
          own.find((one) => one.precision === "fp32") ?? own[0];
      if (!series) continue;
      const profile = series.profiles.at(-1);
      for (const node of profile?.nodes ?? [])
        if (node.flops > 0 && node.bytes > 0 && node.milliseconds > 0)
          nodes.push({index, x: node.flops / node.bytes, y: node.flops / node.milliseconds * 1e-6, name: node.name});
      for (const point of good(series))
        if (point.flops > 0 && point.bytes > 0)
          runs.push({index, x: point.flops / point.bytes, y: point.flops / point.timing.median_ms * 1e-6,
                     name: `the whole model at batch ${point.batch}`});
    }
    const xs = [...nodes, ...runs].map((point) => point.x);
    const datasets = [];
    for (const [index, device] of study.devices.entries()) {
      const colour = colours.series[index % colours.series.length];
      const {flops_per_second: peak, bytes_per_second: bandwidth} = device.roof;
      if (peak > 0 && bandwidth > 0) {
        const ridge = peak / bandwidth;
        const from = Math.min(...xs, ridge) / 1.6, to = Math.max(...xs, ridge) * 1.6;
        datasets.push({
          label: `roof of ${deviceName(device)}`, type: "line", showLine: true, pointRadius: 0, pointHitRadius: 0,
          borderColor: colour, backgroundColor: colour, borderWidth: 2, borderDash: kDashes[index % kDashes.length], pointStyle: "line",
          data: [from, ridge, to].map((x) => ({x, y: Math.min(peak, x * bandwidth) * 1e-9})),
        });
      }
      const dots = (label, points, radius) => points.length > 0 && datasets.push({
        label: `${label} on ${deviceName(device)}`, data: points, backgroundColor: radius > 4 ? colour : "transparent", borderColor: colour,
        borderWidth: 1.3, pointRadius: radius, pointStyle: kMarkers[index % kMarkers.length],
      });
      dots("nodes", nodes.filter((point) => point.index === index), 3);
      dots("runs", runs.filter((point) => point.index === index), 6);
    }
    return {
      type: "scatter", data: {datasets},
      options: options({x: logScale("operations per byte"), y: logScale("GFLOP/s")},
                       (item) => `${item.raw.name}: ${digits(item.raw.y)} GFLOP/s at ${digits(item.raw.x)} FLOP per byte`),
    };
  },

  memory(mode) {
    const all = ofMode(mode);
    return {
      type: "line",
      data: {datasets: all.map((series) => lineOf(series, good(series).map((point) => ({x: point.batch, y: point.memory_bytes / 2 ** 20}))))},
      options: options({x: batchScale(all), y: logScale("MiB")},
                       (item) => `${item.dataset.label}, batch ${item.raw.x}: ${bytes(item.raw.y * 2 ** 20)}`),
    };
  },

  plan() {
    const {profile, label} = chosen();
    const steps = profile.nodes.map((node, i) => ({node, i}));
    const area = (name, field, colour, fill) => ({
      label: name, type: "line", fill, stepped: "middle", pointRadius: 0, pointHitRadius: 6, borderWidth: 1, pointStyle: "rect",
      borderColor: colour, backgroundColor: colour + "aa", stack: "memory",
      data: steps.map(({node, i}) => ({x: i + 1, y: node[field] / 2 ** 20, name: node.name})),
    });
    return {
      type: "line",
      data: {datasets: [
        area("values between nodes", "live_bytes", colours.parts[0], "origin"),
        area("scratch of the node", "scratch_bytes", colours.parts[1], "-1"),
        {label: "arena", data: [1, steps.length].map((x) => ({x, y: profile.memory_bytes.arena / 2 ** 20, name: "arena"})),
         borderColor: colours.text, backgroundColor: "transparent", borderDash: [6, 4], borderWidth: 1.5, pointRadius: 0, pointStyle: "line", stack: "arena"},
      ]},
      options: options(
          {x: {type: "linear", min: 1, max: Math.max(steps.length, 2), title: title("node, in order of execution: " + label),
               grid: {display: false}, ticks: {color: colours.faint, precision: 0}},
           y: linearScale("MiB", digits, {stacked: true})},
          (item) => `${item.raw.name}: ${item.dataset.label} ${bytes(item.raw.y * 2 ** 20)}`),
    };
  },

  precision() {
    const fastest = (series) => good(series).reduce((a, b) => a.samples_per_second > b.samples_per_second ? a : b);
    const all = study.series.filter((series) => series.difference && series.difference.relative !== null && good(series).length > 0);
    const zero = 1e-9;  // a logarithmic scale has no 0
    const modes = new Set(all.map((series) => series.mode));
    return {
      type: "scatter",
      data: {datasets: all.map((series) => ({
        ...lineOf(series, [{x: Math.max(series.difference.relative, zero), y: fastest(series).samples_per_second,
                            exact: series.difference.relative, batch: fastest(series).batch,
                            label: seriesName(series) + (modes.size > 1 ? (series.mode === "train" ? ", training" : ", inference") : "")}]),
        showLine: false, pointRadius: 7,
      }))},
      options: options({x: logScale("largest error, relative", digits, 3), y: logScale("samples per second, at the best batch", digits, 1.6)},
                       (item) => `${item.raw.label}: error ${digits(item.raw.exact)}, ${digits(item.raw.y)} samples/s at batch ${item.raw.batch}`,
                       {legend: {display: false}}),
      plugins: [labels],
    };
  },

  target() {
    const all = study.targets.filter((target) => target.reached && target.seconds !== null);
    return {
      type: "bar", rows: all.length,
      data: {
        labels: all.map((target) => deviceName(study.devices[target.device]) + " " + target.precision),
        datasets: [{label: "seconds", data: all.map((target) => target.seconds),
                    backgroundColor: all.map((target) => colours.series[target.device % colours.series.length])}],
      },
      options: {
        ...options({x: linearScale("seconds"), y: categories()},
                   (item) => `${digits(item.raw)} s for ${all[item.dataIndex].metric} ${all[item.dataIndex].wanted}`,
                   {legend: {display: false}}),
        indexAxis: "y",
      },
    };
  },
};

function hatched(colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 10;
  const context = tile.getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 10, 10);
  context.strokeStyle = colours.background;
  context.lineWidth = 2.5;
  context.beginPath();
  for (const from of [-5, 0, 5, 10]) { context.moveTo(from - 2, 12); context.lineTo(from + 12, -2); }
  context.stroke();
  return context.createPattern(tile, "repeat");
}

const profiles = () => study.series.flatMap((series) => series.profiles.map((profile) => ({
  profile, label: `${seriesName(series)}${series.mode === "train" ? ", training" : ""}, batch ${profile.batch}`,
})));

function chosen() {
  const choice = document.querySelector("select.profile");
  const [series, profile] = choice.value.split("-").map(Number);
  return {profile: study.series[series].profiles[profile], label: choice.selectedOptions[0].textContent};
}

function draw(canvas) {
  const {type, data, options: settings, plugins, rows} = kinds[canvas.dataset.chart](canvas.dataset.mode);
  if (rows !== undefined) canvas.parentNode.style.height = `${Math.max(9, 6 + 2 * rows)}rem`;
  charts.push({canvas, chart: new Chart(canvas, {type, data, options: settings, plugins})});
}

function drawAll(printing) {
  readColours(printing);
  for (const {chart} of charts.splice(0)) chart.destroy();
  document.querySelectorAll("canvas[data-chart]").forEach(draw);
}

// --- tables ---

const keyOf = (cell) => cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent.trim();

function sortBy(head) {
  const table = head.closest("table"), column = head.cellIndex;
  // Numbers begin with the largest, texts with the first.
  const now = head.getAttribute("aria-sort");
  const descending = now ? now === "ascending" : head.classList.contains("number");
  table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const compare = (a, b) => {
    const left = keyOf(a.cells[column]), right = keyOf(b.cells[column]);
    if (typeof left !== typeof right) return typeof left === "number" ? -1 : 1;  // "-" is always last
    const order = typeof left === "number" ? left - right : left.localeCompare(right);
    return descending ? -order : order;
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compare));
}

document.querySelectorAll("table.sortable th").forEach((head) => {
  head.tabIndex = 0;
  head.addEventListener("click", () => sortBy(head));
  head.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sortBy(head);
  });
});

document.querySelector("select.profile")?.addEventListener("change", (event) => {
  document.querySelectorAll("[data-profile]").forEach((part) => { part.hidden = part.dataset.profile !== event.target.value; });
  const index = charts.findIndex(({canvas}) => canvas.dataset.chart === "plan");
  if (index < 0) return;
  const [{canvas, chart}] = charts.splice(index, 1);
  chart.destroy();
  draw(canvas);
});

// --- dark mode and paper ---

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(false));
const kPaperHeight = 300;  // as .chart in print
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((details) => { details.open = true; });
  drawAll(true);
  for (const {canvas, chart} of charts) chart.resize(690, canvas.parentNode.style.height ? canvas.parentNode.clientHeight : kPaperHeight);
});
addEventListener("afterprint", () => {
  opened.forEach((details) => { details.open = false; });
  drawAll(false);
});

/** Share of a canvas's pixels that something was drawn on. */
function drawnShare(canvas) {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let drawn = 0;
  for (let i = 3; i < data.length; i += 4) drawn += data[i] > 0;
  return drawn / (data.length / 4);
}

function check() {
  for (const {canvas, chart} of charts) {
    const name = `${canvas.dataset.chart} (${canvas.dataset.mode})`;
    if (!chart.data.datasets.some((dataset) => dataset.data.length > 0)) problems.push(`${name} has no data`);
    else if (!(canvas.width > 0 && canvas.height > 0 && drawnShare(canvas) > 0.01)) problems.push(`${name} is blank`);
  }
  if (charts.length !== document.querySelectorAll("canvas[data-chart]").length) problems.push("a chart was not drawn");
  document.documentElement.dataset.charts = String(charts.length);
  document.documentElement.dataset.check = problems.length === 0 ? "ok" : problems.join("; ");
}

Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
drawAll(false);
if (location.hash === "#check") setTimeout(check, 50);
})();
