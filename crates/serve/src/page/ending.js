// How turns, tools and workers end, in words.
const failures = {
  INTERNAL_ERROR: "Something went wrong inside the server.",
  RATE_LIMIT_ERROR: "The model's provider limits the number of requests. Try again in a minute.",
  MODEL_UNAVAILABLE: "The model cannot be used at the moment.",
  SUB_AGENT_FAILED: "An assistant could not do its part.",
  CCS_ENVELOPE_ERROR: "A data service answered with an error.",
  PARTIAL_FAN_OUT: "Some of the assistants could not do their part.",
};
const causes = {
  server_restart: "The server was restarted in the middle of it.",
  server_shutdown: "The server was shut down in the middle of it.",
  limit_calls: "It needed more model calls than a turn may make.",
  limit_tokens: "It needed more tokens than a turn may use.",
  limit_cost: "It cost more than a turn may cost.",
  upstream_unavailable: "The agent elsewhere could not be reached.",
  upstream_incomplete: "The answer of the agent elsewhere broke off.",
  upstream_malformed: "The agent elsewhere sent something unreadable.",
};
const toolFaults = {
  timeout: "took too long",
  envelope_error: "its data service answered with an error",
  principal_mismatch: "refused: the answer was for somebody else",
  invalid_input: "was called with an input that it does not accept",
  internal: "failed",
};
const workerFaults = { cancelled_by_user: "the worker was stopped", timeout: "the worker took too long", error: "the worker failed" };
const cancels = { user_cancel: "", turn_timeout: ": it took too long", idle_timeout: ": nothing happened for too long", upstream_cancelled: ": the agent elsewhere stopped", client_disconnected: ": nobody was listening", server_shutdown: ": the server was shut down" };
// The elements of a turn's end, which stay behind all others of the turn. If a snapshot and the log both
// have the end, the one of the log replaces the other: by then the names of the workers are known.
function conclude(turnId, elements) {
  for (const old of endings.get(turnId) ?? []) old.remove();
  for (const element of elements) element.dataset.id = "~"; // sorts after every id
  endings.set(turnId, elements);
}
function fault(p) {
  const error = p.error, why = causes[p.reason] ?? failures[error?.code];
  const all = [error, ...(error?.failed ?? [])].flatMap((each) => [each?.code, each?.sub_agent_id, each?.enricher_id, each?.reason]);
  if (p.status === "failed") return annotate(`The turn failed. ${why ?? "The server does not say why."}`, true, [...all, p.reason]);
  return annotate(`Something is missing from this answer. ${why ?? ""}`.trimEnd(), false, [...all, p.reason]);
}
// The receipt: everything that ran, by its name, and what became of it.
const became = { stopped: "stopped", finished: "finished by itself", killed: "killed" };
function time(ms) { return ms < 100 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`; }
function named(line) {
  if (line.kind === "llm") return "model call";
  if (line.kind === "subagent") return `sub-agent ${line.name ?? line.id}`;
  if (line.kind === "tool") return `tool ${line.name ?? line.id}`;
  if (line.kind === "worker") return `worker on “${workers.get(line.id)?.task ?? line.id}”`;
  return line.name ? `process of ${line.name}` : `process ${line.id}`;
}
function receipt(end) {
  const lines = end.receipt, ms = Math.max(0, ...lines.map((line) => line.ms));
  const left = lines.filter((line) => line.outcome === "discarded").length;
  const note = annotate(`Stopped in ${time(ms)}, ${left ? `${left} still in flight` : "nothing left running"}${cancels[end.reason] ?? ` (${end.reason})`}`);
  if (!lines.length) return [note];
  const list = make("ul", "receipt");
  list.setAttribute("aria-label", "How each part of the turn ended");
  for (const line of lines) {
    const outcome = became[line.outcome] ? `${became[line.outcome]} after ${time(line.ms)}`
      : ["process", "worker"].includes(line.kind) ? `not ended after ${time(line.ms)}, may still run` : "still in flight, its answer is discarded";
    list.append(make("li", "", `${named(line)}: ${outcome}`));
  }
  show(list);
  return [note, list];
}
