// A snapshot has the messages, the open work and the end of the last turn, which are shown at once. How
// earlier tools, approvals, workers and turns ended is in the log: it is read up to the position of the
// snapshot, while live events wait in `held`.
const PAST = "turn.completed,turn.cancelled,turn.cancel_requested,approval.requested,approval.resolved,plan.step_started,"
  + "subagent.started,subagent.completed,delegate.started,delegate.completed,delegate.failed,status.emitted,"
  + "tool.called,tool.completed,tool.failed,data.loaded,component.rendered";
// Of these, only what the running turn still shows.
const PASSING = new Set(["status.emitted", "data.loaded", "component.rendered"]);
const STARTS = new Set(["tool.called", "subagent.started"]), ENDS = new Set(["tool.completed", "tool.failed"]);
let held = null;
function restore(frame) {
  clear();
  last = frame.snapshot_at_event_id;
  if (frame.next) annotate("(older messages are not shown)");
  for (const each of frame.messages) {
    [within, since] = [each.turn_id, each.id];
    if (each.omitted_bytes) annotate(`(a message of ${each.omitted_bytes} bytes is not shown)`);
    else if (each.role === "user" && !each.content.length) continue; // it stands for answers
    render(message(each.id, each.role), each.content);
    if (each.status === "cancelled") annotate("(cancelled)");
  }
  within = since = "";
  setTurn(frame.session.current_turn_id);
  restoreOpen(frame);
  held = [];
  recall(frame);
}
// Hands the open work and the last turn's end to the handlers of their events.
function restoreOpen({ open, last_turn: lastTurn, messages: listed, next }) {
  const as = (type) => (p) => apply({ type, turn_id: p.turn_id ?? turn, actor: p.actor ?? "orchestrator", payload: p });
  open.tools.forEach(as("tool.called"));
  open.sub_agents.forEach(as("subagent.started"));
  open.workers.forEach(as("delegate.started"));
  open.approvals.forEach(as("approval.requested"));
  for (const p of open.inputs) {
    const known = tools.get(p.tool_use_id);
    if (!known) continue;
    known.input.textContent = ""; // the input of the message is parsed; deltas append to the raw text
    as("tool.use_start")({ ...p, tool_name: known.name });
    as("tool.use_input_delta")(p);
  }
  const isListed = !next || listed[0]?.turn_id <= lastTurn?.turn_id;
  if (lastTurn?.terminal && isListed) apply({ ...lastTurn.terminal, turn_id: lastTurn.turn_id, actor: "orchestrator" });
}
function clear() {
  messages = new Map(); tools = new Map(); shown = new Set(); workers = new Map(); asks = new Map(); refused = new Map();
  over = new Set(); endings = new Map(); resolved = new Map(); pending = []; seen = 0; held = null; within = since = "";
  log.replaceChildren(); list.replaceChildren();
}
async function recall(frame) {
  const mine = held, past = [], tail = [], cut = frame.snapshot_at_event_id, deadline = performance.now() + PAST_S * 1000;
  let isShort = false; // true if there is more than is read
  const readPast = async () => {
    const oldest = frame.next && frame.messages.length ? await read(`/turns/${frame.messages[0].turn_id}`, deadline) : null;
    isShort = !await readEvents(past, `&types=${PAST}`, oldest?.position, cut, deadline);
    if (!isShort) return;
    // What came last matters more than what lies between.
    const newest = [];
    await readEvents(newest, `&types=${PAST}`, before(cut, PAGE_EVENTS), cut, deadline);
    const end = past.at(-1)?.id ?? "";
    past.push(...newest.filter((event) => event.id > end));
  };
  const readTail = () => readEvents(tail, "", before(cut, EVENTS_MAX), cut, deadline);
  const reads = await Promise.allSettled([readPast(), readTail()]);
  if (mine !== held) return; // another snapshot, or another session
  const finished = new Set(past.filter((event) => ENDS.has(event.type)).map((event) => event.payload.tool_use_id));
  for (const event of past) if (event.type === "approval.resolved") resolved.set(event.payload.approval_id, event.payload);
  for (const event of past) {
    const { type, payload: p } = event;
    // A start without an end is open work, which is shown already, or its end could not be read.
    if (STARTS.has(type) && !finished.has(p.tool_use_id)) continue;
    if (type === "approval.requested" && !resolved.has(p.approval_id)) continue;
    if (!PASSING.has(type) || event.turn_id === turn) apply(event);
  }
  for (const event of tail) enlist(event);
  held = null;
  for (const event of mine) { apply(event); enlist(event); }
  within = "";
  if (isShort) log.prepend(annotate("(the results of some older turns are not shown)"));
  if (reads.some((each) => each.status === "rejected")) log.prepend(annotate("(some earlier results and events could not be read; reload the page to try again)"));
}
// Reads the events after `since` up to `cut`, page by page; from the oldest one if `since` has expired.
// False if there were more pages than are read.
async function readEvents(into, query, since, cut, deadline) {
  let next = since;
  for (let page = 0; page < PAST_PAGES_MAX && next !== null; page += 1) {
    const got = await read(`/sessions/${session}/events?limit=${PAGE_EVENTS}${query}${next ? `&since=${next}` : ""}`, deadline, Boolean(next));
    if (got) into.push(...got.events.filter((event) => event.id <= cut)); else into.length = 0;
    next = got?.next >= cut ? null : got ? got.next : "";
  }
  return next === null;
}
// The body of a GET, repeated while the server is busy; null if the cursor has expired.
async function read(path, deadline, hasCursor = false) {
  for (let tried = 1; ; tried += 1) {
    const got = await request(path, { signal: AbortSignal.timeout(Math.max(0, deadline - performance.now())) });
    if (got.ok) return got.json();
    if (got.status === 410 && hasCursor) return null;
    const wait = 1000 * (Number(got.headers.get("retry-after")) || tried);
    if (![429, 503].includes(got.status) || tried === PAST_TRIES_MAX || performance.now() + wait > deadline) throw new Error(`${path}: ${got.status}`);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
// The cursor `count` persisted events before a position, whose number is in base 32.
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
function before(position, count) {
  let number = 0, text = "";
  for (const digit of position.slice(8, 18)) number = number * 32 + DIGITS.indexOf(digit);
  number = Math.max(0, number - count);
  for (let place = 0; place < 10; place += 1) { text = DIGITS[number % 32] + text; number = Math.floor(number / 32); }
  return position.slice(0, 8) + text;
}
