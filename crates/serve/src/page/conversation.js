// Messages: one element a block, by index, so that deltas append to what a snapshot has shown.
function message(id, role) {
  let entry = messages.get(id);
  if (!entry) {
    entry = { element: make("article", role), blocks: [] };
    entry.element.setAttribute("aria-label", role);
    messages.set(id, entry);
    if (role !== "tool") show(entry.element);
  }
  return entry;
}
function block(entry, index, kind) {
  if (entry.blocks[index]) return entry.blocks[index];
  const made = { kind, text: "", element: null, node: document.createTextNode("") };
  if (kind === "thinking") {
    made.element = make("details");
    made.element.append(make("summary", "", "Thinking"), make("div", "text"));
    made.element.lastChild.append(made.node);
  } else {
    made.element = make("div", "text");
    made.element.append(made.node);
  }
  entry.blocks[index] = made;
  entry.element.append(made.element);
  return made;
}
function append(entry, index, kind, text) {
  const into = block(entry, index, kind);
  into.text += text;
  into.node.appendData(words(text));
}
function tool(id, name, entry, index) {
  let known = tools.get(id);
  if (!known) {
    known = { name, turn: within, element: make("div", "tool"), input: make("code"), state: make("i"), result: make("code") };
    known.element.append(make("b", "", name), known.state, known.input, known.result);
    tools.set(id, known);
    if (entry) { entry.blocks[index] = { kind: "tool" }; entry.element.append(known.element); } else show(known.element, id.slice(3));
  }
  return known;
}
// The call by which the actor of the event was asked.
function lane(of = actor) {
  return [...tools.values()].findLast((t) => t.turn === within && t.name === `ask_${of.split(":")[1]}`);
}
// `code` is for programs: people see `text`, and the code as its title.
function toolState(id, name, state, text, result, code = "") {
  const known = tool(id, name);
  known.running = state === "running";
  known.element.dataset.state = state;
  known.state.textContent = visible(text);
  known.state.title = visible(code);
  if (result !== undefined) known.result.textContent = visible(result);
  stops();
}
function toolFailed(p) {
  const known = tool(p.tool_use_id, p.tool_name), skipped = !p.called && known.turn === dropped.turn && dropped.names.has(p.tool_name);
  if (refused.has(p.tool_use_id)) toolState(p.tool_use_id, p.tool_name, "rejected", refused.get(p.tool_use_id), "", p.error_class);
  else if (p.error_class === "cancelled") toolState(p.tool_use_id, p.tool_name, "cancelled", "stopped", undefined, p.error_class);
  else if (skipped) toolState(p.tool_use_id, p.tool_name, "skipped", `not asked: at most ${dropped.cap} at once`);
  else if (p.error_class === "not_executed") toolState(p.tool_use_id, p.tool_name, "skipped", "not run: too many calls at once", undefined, p.error_class);
  else toolState(p.tool_use_id, p.tool_name, "failed", toolFaults[p.error_class] ?? "failed", undefined, p.error_class);
}
// A sub-agent that answers although a data service failed it has done a part of its work. Its result is
// for the orchestrator: people see what that says.
const isSubagent = (name) => name.startsWith("ask_");
function toolDone(p) {
  const known = tool(p.tool_use_id, p.tool_name), text = `done in ${p.duration_ms} ms`;
  const result = isSubagent(known.name) ? ["", p.result_summary] : [p.result_summary];
  if (known.partial) toolState(p.tool_use_id, p.tool_name, "partial", `${text}, some of its data could not be loaded`, ...result);
  else toolState(p.tool_use_id, p.tool_name, "done", text, ...result);
}
function subagentDone(p) {
  const known = tool(p.tool_use_id, `ask_${p.sub_agent_id}`);
  known.partial = p.outcome === "status_error";
  if (known.partial) toolState(p.tool_use_id, known.name, "partial", "some of its data could not be loaded", undefined, p.outcome);
}
// A stop on its way: how many of those that ran are gone, and who is waited for.
function stops() {
  if (!stopping) return;
  const left = [...stopping].filter((id) => tools.get(id)?.running), names = left.map((id) => tools.get(id).name);
  $("stop").textContent = stopping.size ? `Stopping ${stopping.size - left.length}/${stopping.size}` : "Stopping…";
  status(names.length ? `Stopping; waiting for ${names.join(", ")} to end…` : "Stopping…");
}
// Workers: a line in the tool that asked for one, with a way into its session.
function worker(p) {
  const known = tools.get(p.tool_use_id), link = make("a", "", "open its session");
  link.href = `#${p.worker_session_id}`;
  workers.set(p.worker_session_id, { task: p.task_summary, tool: p.tool_use_id });
  if (!known) return;
  known.element.querySelector("a")?.remove();
  known.state.after(link);
  if (known.running) known.state.textContent = "Worker running…";
  known.input.textContent = visible(p.task_summary);
}
function workerEnd(id, text) {
  const known = tools.get(workers.get(id)?.tool);
  if (known) known.state.textContent = text;
}
function render(entry, content) {
  content.forEach((part, index) => {
    if (part.type === "text" || part.type === "thinking") {
      const into = block(entry, index, part.type);
      if (into.text !== part.text) { into.text = part.text; into.node.data = words(part.text); }
    } else if (part.type === "tool_use") {
      tool(part.id, part.name, entry, index).input.textContent = visible(JSON.stringify(part.input));
    } else if (part.type === "tool_result") {
      const text = typeof part.content === "string" ? part.content : JSON.stringify(part.content);
      const known = tools.get(part.tool_use_id), state = part.is_error ? "failed" : "done";
      if (known) toolState(part.tool_use_id, "tool", state, state, isSubagent(known.name) ? "" : text);
    } else if (part.type === "data") cards(part.data_id, part.items);
    else if (part.type === "component") cards(part.tool_use_id, [part.component]);
  });
}
// Components: a card for each thing, with what a person would look at first.
function cards(id, things) {
  if (shown.has(id)) return;
  shown.add(id);
  const list = make("ul", "cards");
  for (const thing of things) {
    const item = make("li"), plain = Object.entries(thing ?? {}).filter(([, value]) => ["string", "number"].includes(typeof value));
    const title = plain.find(([key]) => ["title", "name", "label"].includes(key)) ?? plain[0];
    item.append(make("b", "", String(title?.[1] ?? "")));
    for (const [key, value] of plain.filter((pair) => pair !== title && pair[0] !== "id").slice(0, 4)) item.append(make("span", "", `${key.replaceAll("_", " ")}: ${value}`));
    list.append(item);
  }
  if (things.length) show(list);
}
function status(text) {
  $("status")?.remove();
  if (!text) return;
  const line = make("div", "", text);
  line.id = "status";
  line.setAttribute("role", "status");
  show(line);
}
// A note; `codes` are for programs and stand behind a fold.
function annotate(text, bad, codes = []) {
  const note = make("div", bad ? "note bad" : "note", text), more = codes.filter(Boolean);
  if (more.length) {
    note.append(make("details"));
    note.lastChild.append(make("summary", "", "Details"), make("code", "", more.join(", ")));
  }
  show(note);
  return note;
}
