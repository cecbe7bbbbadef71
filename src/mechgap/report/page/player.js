"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const shade = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- the player

const player = page.player;
const state = { seed: 0, sample: 0, mechanism: 0, step: 0, timer: null };
const byId = (id) => document.getElementById(id);
const SIZE = 400, RADIUS = 12;

function svg(tag, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (parent) parent.appendChild(made);
  return made;
}

function told(parent, text) { svg("title", {}, parent).textContent = text; }

function options(select, names) {
  select.replaceChildren(...names.map((name, i) => {
    const option = document.createElement("option");
    option.value = i; option.textContent = name;
    return option;
  }));
}

function arrow(place, from, to, weight, colour, text) {
  if (from === to) {
    const ring = svg("circle", { cx: place[from][0], cy: place[from][1], r: RADIUS + 4, class: "arrow",
      stroke: colour, "stroke-width": 4 * weight, "stroke-opacity": .25 + .75 * weight });
    told(ring, text);
    return ring;
  }
  const [x1, y1] = place[from], [x2, y2] = place[to];
  const length = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (x2 - x1) / length, uy = (y2 - y1) / length;
  const bend = 9, cx = (x1 + x2) / 2 - uy * bend * 2, cy = (y1 + y2) / 2 + ux * bend * 2;
  const sx = x1 + ux * RADIUS, sy = y1 + uy * RADIUS, ex = x2 - ux * (RADIUS + 6), ey = y2 - uy * (RADIUS + 6);
  const group = svg("g", { class: "arrow", "data-from": from, "data-to": to, "data-weight": weight.toFixed(4) });
  svg("path", { d: `M${sx} ${sy}Q${cx} ${cy} ${ex} ${ey}`, fill: "none", stroke: colour,
    "stroke-width": .6 + 4 * weight, "stroke-opacity": .2 + .8 * weight }, group);
  const dx = ex - cx, dy = ey - cy, d = Math.hypot(dx, dy) || 1, vx = dx / d, vy = dy / d, w = 3 + 2 * weight;
  svg("path", { d: `M${ex + vx * 5} ${ey + vy * 5}L${ex - vy * w} ${ey + vx * w}L${ex + vy * w} ${ey - vx * w}Z`,
    fill: colour, "fill-opacity": .2 + .8 * weight }, group);
  told(group, text);
  return group;
}

function drawPanel(id, arrows, nodes) {
  const sample = player.samples[state.sample], place = sample.places.map(([x, y]) => [x * SIZE, y * SIZE]);
  const panel = byId(id);
  panel.replaceChildren();
  for (const [i, j] of sample.edges)
    svg("line", { x1: place[i][0], y1: place[i][1], x2: place[j][0], y2: place[j][1], class: "edge" }, panel);
  for (const { from, to, weight, colour, text } of arrows)
    panel.appendChild(arrow(place, from, to, weight, colour, text));
  nodes.forEach((node, i) => {
    const kinds = ["node", node.set ? "set" : "", i === sample.source ? "source" : "", node.wrong ? "wrong" : ""];
    const group = svg("g", { class: kinds.join(" ").trim(), "data-node": i }, panel);
    svg("circle", { cx: place[i][0], cy: place[i][1], r: RADIUS }, group);
    svg("text", { x: place[i][0], y: place[i][1] }, group).textContent = i;
    svg("text", { x: place[i][0], y: place[i][1] + RADIUS + 7, class: "parent" }, group).textContent = node.label;
    told(group, node.text);
  });
}

function nodesOf(hints, sample) {
  const truth = sample.hints, step = Math.floor(state.step / player.phases);
  const names = Object.keys(hints);
  return sample.places.map((_, i) => {
    const wrong = names.filter((n) => Math.abs(hints[n][step][i] - truth[n][step][i]) > (player.scalars.includes(n) ? .05 : 0));
    const said = names.map((n) => {
      const value = +hints[n][step][i].toFixed(3), right = +truth[n][step][i].toFixed(3);
      return wrong.includes(n) ? `${n} ${value} (true: ${right})` : `${n} ${value}`;
    });
    const pointer = player.pointer && hints[player.pointer] ? hints[player.pointer][step][i] : null;
    const scalar = player.scalars[0], number = scalar && hints[scalar] ? hints[scalar][step][i] : null;
    return {
      set: player.flag && hints[player.flag] ? hints[player.flag][step][i] > .5 : false,
      wrong: wrong.length > 0,
      label: pointer !== null ? (pointer === i ? "" : `←${pointer}`) : number === null ? "" : number.toFixed(2),
      text: `node ${i}\n${said.join("\n")}`,
    };
  });
}

function attentionAt(values, sample) {  // values: one number per pair in sample.pairs
  return sample.pairs.map(([to, from], k) => ({ from, to, weight: values[k] / 1000 }));
}

function draw() {
  const sample = player.samples[state.sample], seed = player.seeds[state.seed];
  const run = seed.samples[state.sample], step = state.step;
  const learned = attentionAt(run.attention[step], sample);
  const mechanism = player.mechanisms[state.mechanism];
  const senders = mechanism ? sample.senders[mechanism][step] : null;
  const words = (a, who) => `${who}: ${a.to} attends to ${a.from} with ${a.weight.toFixed(3)}`;
  const colours = { learned: shade("--learned"), compiled: shade("--compiled") };
  drawPanel("learned", learned.filter((a) => a.weight > .02).map((a) => ({ ...a, colour: colours.learned, text: words(a, "learned") })),
    nodesOf(Object.keys(run.hints).length ? run.hints : sample.hints, sample));
  if (senders) {
    const exact = senders.map((from, to) => ({ from, to, weight: 1 }));
    drawPanel("compiled", exact.map((a) => ({ ...a, colour: colours.compiled, text: words(a, "compiled") })),
      nodesOf(sample.hints, sample));
    const apart = learned.map((a) => ({ ...a, weight: a.weight - (senders[a.to] === a.from ? 1 : 0) }));
    drawPanel("difference", apart.filter((a) => Math.abs(a.weight) > .02).map((a) => ({
      from: a.from, to: a.to, weight: Math.abs(a.weight), colour: a.weight > 0 ? colours.learned : colours.compiled,
      text: `${a.to} attends to ${a.from} ${a.weight > 0 ? "more" : "less"} than compiled, by ${Math.abs(a.weight).toFixed(3)}`,
    })), nodesOf(sample.hints, sample));
    const elsewhere = learned.reduce((sum, a) => sum + Math.max(0, a.weight - (senders[a.to] === a.from ? 1 : 0)), 0);
    byId("tv").textContent = `${(100 * elsewhere / sample.places.length).toFixed(0)} % of attention is misplaced in this step` +
      (sample.told ? `. In the end: ${sample.told}` : "");
  }
  byId("step").max = shown(sample) - 1;
  byId("step").value = step;
  const hint = Math.floor(step / player.phases) + 1, phase = step % player.phases + 1;
  byId("when").textContent = `step ${hint} of ${sample.steps}` +
    (player.phases > 1 ? `, phase ${phase} of ${player.phases}` : "");
}

function shown(sample) { return sample.steps * player.phases; }

function go(step) {
  const steps = shown(player.samples[state.sample]);
  state.step = Math.max(0, Math.min(steps - 1, step));
  draw();
}

function stop() {
  clearInterval(state.timer);
  state.timer = null;
  byId("play").textContent = "Play";
}

function play() {
  if (state.timer) return stop();
  const steps = shown(player.samples[state.sample]);
  if (state.step === steps - 1) go(0);
  byId("play").textContent = "Pause";
  state.timer = setInterval(() => { go(state.step + 1); if (state.step === steps - 1) stop(); }, 900);
}

function hasRun(sample) { return Boolean(player.seeds[state.seed].samples[sample]); }

function listGraphs() {  // those over which the chosen network was run
  const select = byId("sample");
  const names = player.samples.map((s, i) => ("wrongOf" in s ? `the smallest it is wrong on` : `graph ${i + 1}`) +
    ` (${s.steps} ${s.steps === 1 ? "step" : "steps"})`);
  options(select, names);
  for (const option of [...select.options]) if (!hasRun(+option.value)) option.remove();
  select.value = state.sample;
}

function choose(seed, sample) {
  state.seed = seed;
  if (hasRun(sample)) state.sample = sample;
  else { stop(); state.sample = 0; state.step = 0; }
  byId("seed").value = seed;
  listGraphs();
}

function openWrong(number) {  // the run of a seed over the smallest graph on which it is wrong
  const sample = player.samples.findIndex((s) => s.wrongOf === number);
  stop();
  choose(player.seeds.findIndex((s) => s.samples[sample]), sample);
  go(0);
}

function startPlayer() {
  options(byId("seed"), player.seeds.map((s) => s.name));
  listGraphs();
  options(byId("mechanism"), player.mechanisms);
  byId("mechanism").parentElement.hidden = player.mechanisms.length < 2;
  for (const flag of document.querySelectorAll("#player .flag")) flag.hidden = !player.flag;
  byId("set").textContent = player.flag;
  byId("unset").textContent = `not ${player.flag}`;
  byId("source").hidden = player.samples.every((s) => s.source < 0);
  byId("label").textContent = player.pointer ? `←k: ${player.pointer} is k` :
    player.scalars.length ? `below a node: ${player.scalars[0]}` : "";
  byId("seed").onchange = (e) => { choose(+e.target.value, state.sample); draw(); };
  byId("mechanism").onchange = (e) => { state.mechanism = +e.target.value; draw(); };
  byId("sample").onchange = (e) => { state.sample = +e.target.value; stop(); go(0); };
  byId("step").oninput = (e) => { stop(); go(+e.target.value); };
  byId("play").onclick = play;
  document.addEventListener("keydown", (e) => {
    if (["INPUT", "SELECT", "BUTTON"].includes(e.target.tagName) && e.target.id !== "step") return;
    if (e.key === "ArrowRight") { e.preventDefault(); stop(); go(state.step + 1); }
    else if (e.key === "ArrowLeft") { e.preventDefault(); stop(); go(state.step - 1); }
  });
  for (const link of document.querySelectorAll("a[data-wrong-of]")) link.onclick = () => openWrong(+link.dataset.wrongOf);
  go(0);
}

if (player) {
  startPlayer();
  dark.addEventListener("change", draw);
}
document.documentElement.dataset.ready = "true";
