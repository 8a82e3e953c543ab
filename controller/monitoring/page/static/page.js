"use strict";

// Shows the snapshots that the controller sends. Names of topics and brokers come from strangers: everything is set as
// text, never as markup, and the page's policy forbids the rest.

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 10000;
const SILENCE_MS = 25000; // more than twice the time after which the controller says that nothing changed

const byId = (id) => document.getElementById(id);

// --- words ---

const whole = new Intl.NumberFormat("en");

function many(count, one, more) {
  return `${whole.format(count)} ${count === 1 ? one : more || one + "s"}`;
}

function size(bytes) {
  if (bytes === null || bytes < 0) return "unknown";
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}

function duration(ms) {
  if (ms === null || ms < 0) return "unknown";
  const seconds = Math.floor(ms / 1000);
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

const list = (brokers) => brokers.length ? brokers.join(", ") : "none";
const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

function moment(ms) {
  const then = new Date(ms);
  const isToday = then.toDateString() === new Date().toDateString();
  return isToday ? clock(ms) : `${then.toLocaleDateString("en-CA")} ${clock(ms)}`;
}

// --- elements ---

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) if (value !== null) made.setAttribute(key, value);
  return made;
}

const filled = new WeakMap();

// Elements stay as long as what they show does, so that a selection or the place on the page is not lost.
function fill(parent, items, keyOf, make) {
  const isFirst = !filled.has(parent);
  const known = filled.get(parent) || new Map();
  const rows = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const text = JSON.stringify(item);
    const old = known.get(key);
    if (old && old.text === text) { rows.set(key, old); continue; }
    const node = make(item);
    if (!old && !isFirst) node.classList.add("fresh");
    rows.set(key, { text, node });
  }
  filled.set(parent, rows);
  const nodes = [...rows.values()].map((row) => row.node);
  const isSame = nodes.length === parent.childNodes.length && nodes.every((node, i) => node === parent.childNodes[i]);
  if (!isSame) parent.replaceChildren(...nodes);
}

// A column: its heading, what makes the cell's text or nodes of an item, and its class.
function table(id, columns, items, keyOf, toneOf) {
  const [head, body] = byId(id).children;
  if (!head.hasChildNodes()) {
    const row = element("tr");
    for (const [title, , kind] of columns) row.append(element("th", title, { scope: "col", class: kind || null }));
    head.append(row);
  }
  fill(body, items, keyOf, (item) => {
    const row = element("tr", null, { "data-tone": toneOf(item) });
    columns.forEach(([title, cell, kind], i) => {
      const attributes = i ? { "data-label": title, class: kind || null } : { scope: "row" };
      const made = element(i ? "td" : "th", null, attributes);
      made.append(cell(item));
      row.append(made);
    });
    return row;
  });
}

function done(share) {
  if (share === null) return "unknown";
  const text = `${Math.floor(share * 100)} %`;
  const cell = element("span", null, { class: "share" });
  cell.append(element("progress", null, { max: "1", value: String(share), "aria-hidden": "true" }), text);
  return cell;
}

const nameOf = (item) => `${item.topic}-${item.partition}`;
const more = (count, shown) => count > shown ? ` The first ${whole.format(shown)} are shown.` : "";

// --- the parts of the page ---

function showController(now) {
  const { controller } = now;
  byId("title").textContent = `Klamm controller ${controller.id}`;
  const parts = [controller.status];
  if (controller.epoch !== null) parts.push(`epoch ${controller.epoch}`);
  if (controller.session !== "connected") parts.push(`ZooKeeper session ${controller.session}`);
  parts.push(`${many(controller.events_waiting, "event")} waiting`);
  byId("status").textContent = parts.join(" · ");
  const offline = now.cluster ? now.cluster.at_risk.offline : 0;
  document.title = `${offline ? `${offline} offline · ` : ""}Klamm controller ${controller.id}`;
  const note = byId("standby");
  note.hidden = now.cluster !== null;
  note.textContent = controller.is_active
    ? "This controller loads the cluster."
    : `This controller is ${controller.status}. The active controller's page shows the cluster.`;
}

function showCounts({ controller, cluster }) {
  const risks = cluster && cluster.at_risk;
  const counts = cluster === null ? [] : [
    ["offline", risks.offline, "bad"],
    ["under min ISR", risks.under_min_isr, "bad"],
    ["under-replicated", risks.under_replicated, "warn"],
    ["moves", cluster.moves.count, null],
    ["moves stalled", cluster.moves.totals.stalled, "warn"],
    ["brokers not alive", cluster.brokers.count - cluster.brokers.live, "bad"],
    ["brokers live", cluster.brokers.live, null],
    ["topics", cluster.topics, null],
    ["partitions", cluster.partitions, null],
    ["not led by preferred", risks.imbalanced, null],
    ["topics in deletion", cluster.topics_being_deleted, null],
    ["quarantined", controller.quarantined, "bad"],
  ];
  fill(byId("counts"), counts, (count) => count[0], ([label, value, tone]) => {
    const item = element("li", null, { "data-tone": value ? tone : null });
    item.append(element("strong", whole.format(value)), element("span", label));
    return item;
  });
}

const RISK_COLUMNS = [
  ["partition", nameOf],
  ["risk", (row) => row.risk, "mark"],
  ["leader", (row) => row.leader < 0 ? "none" : String(row.leader)],
  ["ISR", (row) => list(row.isr), "brokers-list"],
  ["replicas", (row) => list(row.replicas), "brokers-list"],
  ["brokers not alive", (row) => row.dead.length ? list(row.dead) : ""],
  ["min ISR", (row) => String(row.min_isr), "number"],
];

function showRisks({ at_risk: risks, partitions }) {
  const { offline, under_min_isr: under, under_replicated: few, rows } = risks;
  const parts = [offline && `${whole.format(offline)} offline`, under && `${whole.format(under)} under min ISR`,
    few && `${whole.format(few)} under-replicated`].filter(Boolean);
  const shown = Math.max(offline, under, few) > rows.length ? more(Math.max(offline, under, few), rows.length) : "";
  const none = partitions ? "None: every partition has its leader and all its replicas." : "None: there are no partitions yet.";
  byId("sum-risks").textContent = parts.length ? `${parts.join(", ")}.${shown}` : none;
  table("risks", RISK_COLUMNS, rows, nameOf, (row) => row.risk === "under-replicated" ? "warn" : "bad");
}

const MOVE_COLUMNS = [
  ["partition", nameOf],
  ["adds", (row) => list(row.adding), "brokers-list"],
  ["removes", (row) => list(row.removing), "brokers-list"],
  ["copied", (row) => done(row.done)],
  ["left", (row) => size(row.bytes_left), "number"],
  ["rate", (row) => row.rate === null ? "unknown" : `${size(row.rate)}/s`, "number"],
  ["time left", (row) => duration(row.eta_ms), "number"],
  ["waits for", (row) => row.waits_for + (row.is_stalled ? " (stalled)" : ""), "wide mark"],
];

function showMoves(moves) {
  const { count, totals, rows } = moves;
  const parts = [many(count, "move"), `${size(totals.bytes_left)} left`];
  if (totals.rate >= 0) parts.push(`${size(totals.rate)}/s`);
  if (totals.eta_ms >= 0) parts.push(`${duration(totals.eta_ms)} to go`);
  if (totals.stalled) parts.push(`${whole.format(totals.stalled)} stalled`);
  byId("sum-moves").textContent = count ? `${parts.join(" · ")}.${more(count, rows.length)}` : "None is in progress.";
  table("moves", MOVE_COLUMNS, rows, nameOf, (row) => row.is_stalled ? "warn" : null);
}

function timeLeft(row) {
  if (row.is_over) return "";
  return duration(row.left_ms) + (row.left_ms !== null && row.error_percent !== null ? ` (so far within ${row.error_percent} %)` : "");
}

function waitsOf(row) {
  const waits = row.waits.filter(([text]) => text !== row.why).map(([text, count]) => `${many(count, "move waits", "moves wait")}: ${text}`);
  const problems = Object.entries(row.problems).map(([what, count]) => `${whole.format(count)} ${what}`);
  return [row.why, ...waits, ...problems].filter(Boolean).join("; ");
}

const ROLLOUT_COLUMNS = [
  ["rollout", (row) => row.name],
  ["state", (row) => row.is_held ? `${row.phase}, held` : row.phase, "mark"],
  ["moves ended", (row) => done(row.of ? row.ended / row.of : 1)],
  ["of", (row) => whole.format(row.of), "number"],
  ["in flight", (row) => whole.format(row.in_flight), "number"],
  ["left", (row) => row.is_over ? "" : size(row.bytes_left), "number"],
  ["rate", (row) => row.rate === null ? "" : `${size(row.rate)}/s`, "number"],
  ["throttle", (row) => row.throttle === null ? "" : `${size(row.throttle)}/s`, "number"],
  ["time left", timeLeft],
  ["waits for", waitsOf, "wide"],
];

function showRollouts(rollouts) {
  byId("section-rollouts").hidden = rollouts.length === 0;
  const running = rollouts.filter((row) => !row.is_over).length;
  byId("sum-rollouts").textContent = running ? `${many(running, "rollout")} not over, carried out one after the other.` : "All are over.";
  table("rollouts", ROLLOUT_COLUMNS, rollouts, (row) => row.name, (row) => row.is_held ? "warn" : null);
}

const BROKER_COLUMNS = [
  ["broker", (row) => String(row.id)],
  ["state", (row) => row.state, "mark"],
  ["address", (row) => row.address],
  ["rack", (row) => row.rack || ""],
  ["leaders", (row) => whole.format(row.leaders), "number"],
  ["replicas", (row) => whole.format(row.replicas), "number"],
  ["waiting to be sent", (row) => whole.format(row.waiting), "number"],
];

function showBrokers(brokers) {
  const { live, count, rows } = brokers;
  byId("sum-brokers").textContent = count ? `${live} of ${count} are alive.${more(count, rows.length)}` : "None is registered.";
  table("brokers", BROKER_COLUMNS, rows, (row) => row.id, (row) => row.state === "live" ? null : row.state === "not alive" ? "bad" : "warn");
}

const SHORT = 10;
let isLong = false;

function changesOf(decision) {
  const brokers = Object.entries(decision.brokers).map(([what, ids]) => `${what.replaceAll("_", " ")}: ${list(ids)}`);
  const counts = Object.entries(decision.changes).map(([what, count]) => `${what.replaceAll("_", " ")}: ${whole.format(count)}`);
  return [...brokers, ...counts].join(", ");
}

function showDecisions(decisions) {
  byId("sum-decisions").textContent = decisions.length
    ? "Events that changed something, the newest first. The log has more under the same id."
    : "Nothing has been changed by this process yet.";
  const button = byId("older");
  button.hidden = isLong || decisions.length <= SHORT;
  fill(byId("decisions"), isLong ? decisions : decisions.slice(0, SHORT), (decision) => decision.id, (decision) => {
    const item = element("li");
    const time = element("time", moment(decision.time_ms), { datetime: new Date(decision.time_ms).toISOString() });
    const why = element("span", decision.why || decision.event, { class: "why" });
    const cause = decision.caused_by ? `, called for by ${decision.caused_by}` : "";
    const times = decision.count > 1 ? `, ${many(decision.count, "event")} up to this one` : "";
    why.append(" ", element("span", `${decision.event} ${decision.id}${cause}${times}`, { class: "id" }));
    item.append(time, why, element("p", changesOf(decision), { class: "what" }));
    if (decision.examples.length) {
      const examples = element("ul", null, { class: "examples" });
      for (const example of decision.examples) examples.append(element("li", example));
      item.append(examples);
    }
    return item;
  });
}

let shown = null;

function show(now) {
  shown = now;
  showController(now);
  showCounts(now);
  for (const name of ["risks", "moves", "rollouts", "brokers"]) byId(`section-${name}`).hidden = now.cluster === null;
  if (now.cluster !== null) {
    showRisks(now.cluster);
    showMoves(now.cluster.moves);
    showRollouts(now.cluster.rollouts);
    showBrokers(now.cluster.brokers);
  }
  showDecisions(now.decisions);
}

// --- the stream ---

let source = null;
let latest = null;
let shownAt = null;
let isPaused = false;
let retryMs = FIRST_RETRY_MS;
let watchdog = 0;

function tell(state, text) {
  const line = byId("stream");
  line.dataset.state = state;
  if (line.textContent !== text) line.textContent = text;
  byId("main").toggleAttribute("data-stale", state === "broken" && shownAt !== null);
}

function showState() {
  if (isPaused) tell("paused", `Paused: this is how it was at ${clock(shownAt || Date.now())}.`);
  else tell("live", "Live: changes show within a second.");
}

function alive() {
  clearTimeout(watchdog);
  watchdog = setTimeout(() => broken("The controller says nothing any more"), SILENCE_MS);
  retryMs = FIRST_RETRY_MS;
}

function take(event) {
  alive();
  latest = JSON.parse(event.data);
  if (!isPaused) {
    shownAt = Date.now();
    show(latest);
  }
  showState();
}

function connect() {
  source = new EventSource("events");
  source.onmessage = take;
  source.onopen = alive;
  source.addEventListener("alive", () => { alive(); showState(); });
  source.onerror = () => broken("The connection to the controller is lost");
}

async function broken(why) {
  source.close();
  clearTimeout(watchdog);
  let reason = why;
  try {
    const answer = await fetch("events", { method: "HEAD", cache: "no-store" });
    if (answer.status === 503) reason = "Too many browsers follow this controller: close one";
  } catch { /* it does not answer, which is what we say */ }
  const since = shownAt === null ? "" : ` What you see is from ${clock(shownAt)}.`;
  tell("broken", `${reason}.${since} Trying again.`);
  setTimeout(connect, retryMs);
  retryMs = Math.min(2 * retryMs, LAST_RETRY_MS);
}

byId("pause").addEventListener("click", (event) => {
  isPaused = !isPaused;
  event.target.textContent = isPaused ? "Resume updates" : "Pause updates";
  if (!isPaused && latest !== null) { shownAt = Date.now(); show(latest); }
  if (byId("stream").dataset.state !== "broken") showState();
});

byId("older").addEventListener("click", () => {
  isLong = true;
  byId("decisions").focus();
  showDecisions(shown.decisions);
});

connect();
