let unsure = null; // a message that may have arrived or not; sent again, it is the same one
async function send() {
  const text = input.value, within = session;
  if (!text.trim() || !session || posting) return;
  const known = unsure?.text === text && unsure.session === within ? unsure.key : null;
  const key = posting = known ?? Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("-");
  unsure = { text, session: within, key };
  $("send").disabled = true;
  conversation.follow();
  button();
  let answer = null;
  try { answer = await call(`/sessions/${within}/turns`, { message: text }, { headers: { "idempotency-key": key } }); } catch { /* told below */ }
  const arrived = answer ? answer.ok : Boolean(unsure?.seen);
  if (answer || arrived || asked) unsure = null;
  // Another session may be open by now.
  if (posting === key) {
    const id = answer?.body.turn_id, over = ["completed", "cancelled"].includes(answer?.body.state) || id === ended;
    if (arrived) { input.value = ""; notice(""); } else notice(answer?.body.detail ?? "The server did not answer; nothing was sent twice. Try again.");
    if (!arrived && asked && !asked.turn) asked = null; // it was for this one
    if (id && !over && (arrived || answer.status === 409)) setTurn(turn ?? id);
    posting = null;
    if (!turn) asked = null;
    button();
  }
  $("send").disabled = false;
  input.focus();
}
// A stop is asked for until the server has it, or the turn is over.
async function stop() {
  if ($("stop").disabled) return;
  const mine = asked = { turn }, key = posting, within = session, reason = "user_cancel";
  button();
  for (let tried = 0; asked === mine; tried += 1) {
    const ask = turn ? [`/turns/${turn}/cancel`, { reason }] : [`/sessions/${within}/cancel`, { reason, idempotency_key: key }];
    try {
      const answer = await call(...ask, { signal: AbortSignal.timeout(STOP_S * 1000) });
      if (answer.ok || asked !== mine) return;
      if (answer.status < 500 && answer.status !== 429) {
        asked = null;
        button();
        return notice(answer.body.detail);
      }
    } catch { /* again */ }
    if (asked === mine) notice("The server does not answer; sending the stop again.");
    await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(RETRY_MAX_S, 0.5 * 2 ** tried)));
  }
}
$("send").onclick = send;
$("stop").onclick = stop;
$("fresh").onclick = () => open(null);
input.onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
};
document.onkeydown = (event) => { if (event.key === "Escape" && entry.hidden) stop(); };
window.onhashchange = () => { const id = location.hash.slice(1); if (id !== session) open(id); };
// What the keys do is said where there is room for it.
const narrow = matchMedia("(max-width: 30rem)");
const hint = () => { input.placeholder = narrow.matches ? "Message" : "Write a message. Enter sends, Esc stops."; };
narrow.onchange = hint;
hint();
// A connection that has gone quiet without an end: ask, and give up if nobody answers.
setInterval(() => {
  if (socket?.readyState !== WebSocket.OPEN) return;
  const silent = (performance.now() - heard) / 1000;
  if (silent > SILENCE_S) { socket.close(); closed(run, { reason: "" }); }
  else if (silent > SILENCE_S / 2) socket.send(JSON.stringify({ type: "ping", nonce: String(Math.random()) }));
}, 5000);
open(location.hash.slice(1) || memory.get());
