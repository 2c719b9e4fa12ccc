// Every event goes to the list; those that change the conversation also go there.
let dropped = { turn: "", cap: 0, names: new Set() }; // sub-agents that were not asked
let over = new Set(), endings = new Map(), resolved = new Map(); // turns that have ended, their notes, answers
const on = {
  "turn.started": (p, e) => {
    if (unsure && p.input.some((block) => block.text === unsure.text)) unsure = posting ? { ...unsure, seen: true } : null;
    setTurn(e.turn_id);
    if (p.input.length) render(message(p.user_message_id, "user"), p.input);
  },
  "turn.cancel_requested": (p, e) => {
    if (e.turn_id !== turn) return;
    stopping = new Set([...tools.keys()].filter((id) => tools.get(id).running));
    button();
    stops();
  },
  "turn.cancelled": (p, e) => { over.add(e.turn_id); ended = e.turn_id; conclude(e.turn_id, receipt(p)); if (turn === e.turn_id) setTurn(null); },
  "turn.completed": (p, e) => {
    over.add(e.turn_id);
    if (p.status === "paused") waits(e.turn_id);
    if (p.status === "failed" || p.status === "degraded") conclude(e.turn_id, [fault(p)]);
    ended = e.turn_id; if (turn === e.turn_id) setTurn(null);
  },
  "delegate.started": worker,
  "delegate.completed": (p) => workerEnd(p.worker_session_id, p.success ? "the worker has finished" : "the worker did not complete its task"),
  "delegate.failed": (p) => workerEnd(p.worker_session_id, workerFaults[p.failure_mode] ?? "the worker failed"),
  "approval.requested": (p, e) => ask(e.turn_id, p, resolved.get(p.approval_id)),
  "approval.resolved": answered,
  "plan.step_started": (p, e) => { dropped = { turn: e.turn_id, cap: p.cap, names: new Set(p.dropped.map((id) => `ask_${id}`)) }; },
  "subagent.started": (p) => toolState(p.tool_use_id, `ask_${p.sub_agent_id}`, "running", "working…"),
  "subagent.completed": subagentDone,
  "status.emitted": (p, e) => {
    if (e.render?.policy === "suppress") return;
    status(e.render?.message ?? p.message);
    const asked = lane();
    if (asked?.running) asked.state.textContent = visible(p.message);
  },
  "data.loaded": (p) => cards(p.id, p.items),
  "component.rendered": (p) => cards(p.tool_call.id, [p.component]),
  "message.start": (p) => message(p.message_id, "assistant"),
  "text.delta": (p) => { status(""); append(message(p.message_id, "assistant"), p.content_block_index, "text", p.text); },
  "thinking.delta": (p) => append(message(p.message_id, "assistant"), p.content_block_index, "thinking", p.text),
  "tool.use_start": (p) => {
    tool(p.tool_use_id, p.tool_name, message(p.message_id, "assistant"), p.content_block_index);
    toolState(p.tool_use_id, p.tool_name, "pending", "calling…");
  },
  "tool.use_input_delta": (p) => { const t = tools.get(p.tool_use_id); if (t) t.input.append(visible(p.partial_json)); },
  "tool.use_end": (p) => { const t = tools.get(p.tool_use_id); if (t) t.input.textContent = visible(JSON.stringify(p.final_input)); },
  "message.complete": (p) => {
    render(message(p.message_id, "assistant"), p.final_content);
    if (p.stop_reason === "cancelled") annotate("(cancelled)");
  },
  // A failed call that is not repeated is told by the end of the turn.
  "llm.call_started": (p, e) => { if (p.attempt > 1 && e.actor === "orchestrator") status("The model did not answer; trying again…"); },
  "tool.called": (p) => { tool(p.tool_use_id, p.tool_name).type = p.tool_type; toolState(p.tool_use_id, p.tool_name, "running", "running…"); },
  "tool.completed": toolDone,
  "tool.failed": toolFailed,
};
function apply(event) {
  within = event.turn_id ?? "";
  actor = event.actor;
  on[event.type]?.(event.payload, event);
}
function receive(event) {
  last = event.id;
  if (held) { held.push(event); return; }
  apply(event);
  enlist(event);
}
function enlist(event) {
  seen += 1;
  if (missing > 0 && event.persisted && --missing === 0) badge("live", "live");
  if (pending.push(event) === 1) requestAnimationFrame(drawEvents);
  if (pending.length > EVENTS_MAX) pending.shift();
}
function drawEvents() {
  list.append(...pending.map((event) => {
    const row = make("li"), payload = JSON.stringify(event.payload), piece = event.payload.text ?? event.payload.partial_json;
    const brief = piece === undefined ? payload : JSON.stringify(piece);
    row.title = visible(payload.slice(0, 2000));
    row.append(make("b", "", event.type), make("span", "", event.actor), make("span", "", event.id), make("span", "", brief.slice(0, 200)));
    return row;
  }));
  pending = [];
  while (list.childElementCount > EVENTS_MAX) list.firstChild.remove();
  $("count").textContent = String(seen);
}
