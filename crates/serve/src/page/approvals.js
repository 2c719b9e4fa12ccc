// Questions to a person: a card each, until anyone has answered. A yes is possible once the end of the
// whole input has been in view for a moment, so that a click meant for another card does not count.
// An `outcome` is that of a question which is answered already: its card has no input and no buttons.
let refused = new Map(); // tools that do not run, with the words for it
function ask(turnId, q, outcome = null) {
  if (asks.has(q.approval_id)) return;
  const card = make("div", "ask"), row = make("div", "row"), yes = make("button", "primary", "Allow"), no = make("button", "", "Reject");
  const whole = make("div", "whole"), size = make("div", "size", "Reading the input…"), end = make("i");
  const path = `/turns/${turnId}/approvals`, id = q.approval_id.slice(5), known = { name: q.tool_name, tool: q.tool_use_id, whole, size, row, turn: turnId, digest: undefined, read: false };
  const title = `Allow ${exact(q.tool_name)} to run with this input?`;
  let look = 0; // the timer of the moment
  card.setAttribute("role", "group");
  card.setAttribute("aria-label", title);
  whole.tabIndex = 0;
  whole.setAttribute("role", "region");
  whole.setAttribute("aria-label", "The whole input");
  asks.set(q.approval_id, known);
  if (outcome) {
    card.append(make("b", "", title), row);
    answered(outcome);
    return show(card, id);
  }
  row.append(yes, no);
  card.append(make("b", "", title), whole, size, row);
  const seenToEnd = new IntersectionObserver((entries) => {
    clearTimeout(look);
    if (entries.at(-1).isIntersecting) look = setTimeout(() => {
      if (seenToEnd.takeRecords().at(-1)?.isIntersecting === false) return; // it has left the view just now
      seenToEnd.disconnect();
      known.read = true; yes.disabled = no.disabled; yes.title = "";
    }, LOOK_MS);
  });
  const load = async () => {
    try {
      const got = await request(`${path}/${q.approval_id}`), item = await got.json();
      if (!got.ok) throw new Error(item.detail);
      if (item.input_json === null) { size.textContent = "The input is no longer stored; the tool would not run."; return; }
      const lines = layout(item.input_json).map((line) => { const row = make("div"); row.textContent = exact(line); return row; });
      whole.replaceChildren(...lines, end);
      size.textContent = `${lines.length} lines, ${item.input_bytes} bytes, SHA-256 ${item.input_sha256}. Read to the end to allow it.`;
      known.digest = item.input_sha256;
      seenToEnd.observe(end);
    } catch {
      size.textContent = "The input could not be read; trying again.";
      setTimeout(() => { if (card.isConnected && !known.done) load(); }, 2000);
    }
  };
  const answer = async (decision) => {
    if (decision === "approve" && !known.read) return;
    known.pressed = known.row.contains(document.activeElement);
    yes.disabled = no.disabled = true;
    try {
      const got = await call(path, { approval_id: q.approval_id, decision, input_sha256: known.digest }, { once: true }); // a decision is of who signed in for it
      if (got.ok) return;
      notice(got.body.detail);
    } catch { notice("The server did not answer. Try again."); }
    no.disabled = false;
    yes.disabled = !known.read;
  };
  yes.type = no.type = "button"; yes.disabled = true;
  yes.title = "Read the input to its end first.";
  yes.onclick = () => answer("approve");
  no.onclick = () => answer("reject");
  toolState(q.tool_use_id, q.tool_name, "waiting", "waiting for approval");
  show(card, id);
  load();
}
function answered(p) {
  const known = asks.get(p.approval_id), how = p.decision === "approve" ? "Allowed" : "Rejected";
  if (!known || known.done) return;
  known.done = true;
  if (p.decision === "reject") refused.set(known.tool, p.by === "system" ? "not run: no decision was made" : "not run: rejected");
  const focused = known.pressed || known.row.parentElement.contains(document.activeElement);
  known.row.replaceChildren(make("span", "", p.by === "system" ? "Withdrawn: the conversation continued without a decision." : `${how} by ${p.by}.${p.comment ? ` “${p.comment}”` : ""}`));
  known.whole.remove(); // the call of the tool has the input
  known.size.remove();
  waits(known.turn);
  // The next question, or the message: the buttons that had the focus are gone.
  if (focused) (log.querySelector(".ask:has(button) .whole") ?? input).focus({ preventScroll: true });
}
// The note of a paused turn, until all of its questions are answered.
function waits(turnId) {
  const open = [...asks.values()].filter((q) => q.turn === turnId && !q.done);
  if (!over.has(turnId)) return;
  within = turnId;
  const note = () => annotate(`The turn waits for approval: ${open.map((q) => `allow ${q.name} to run?`).join(" ")}`);
  conclude(turnId, open.length ? [note()] : []);
}
