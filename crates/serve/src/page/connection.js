// The connection: a fresh token each time, a snapshot first, the cursor after that.
function subscribe(snapshot) {
  socket.send(JSON.stringify({ type: "subscribe", filter: "preset:full", since: snapshot ? null : last, snapshot }));
}
function frame(data) {
  heard = performance.now();
  const it = JSON.parse(data);
  if (it.type === "event") receive(it.event);
  else if (it.type === "snapshot") restore(it);
  else if (it.type === "ping") {
    socket.send(JSON.stringify({ type: "pong", nonce: it.nonce }));
    if (it.position > last) last = it.position;
  } else if (it.type === "subscribe_ack") {
    attempt = 0;
    isNewcomer = false;
    notice("");
    missing = it.replay_event_count;
    if (missing > 0) badge("busy", `catching up ${missing}`); else badge("live", "live");
  } else if (it.type === "subscribe_error") {
    if (it.code === "session_not_found") gone("This session is gone."); else subscribe(true);
  }
}
function gone(text) {
  run += 1;
  badge("down", "ended");
  notice(`${text} Start a new one.`);
  setTurn(null);
}
function closed(mine, event) {
  if (mine !== run) return;
  let reason = {};
  try { reason = JSON.parse(event.reason); } catch { /* a plain end */ }
  if (reason.code === "session_deleted") return gone("This session was deleted.");
  if (reason.code === "session_quarantined") return gone("This session's log is damaged.");
  if (["identity_expired", "identity_revoked"].includes(reason.code)) return signIn(refusals[reason.code]);
  retry(mine);
}
function retry(mine) {
  const until = performance.now() + 1000 * Math.min(RETRY_MAX_S, 0.5 * 2 ** attempt++) * (0.75 + Math.random() / 2);
  clearInterval(tries);
  tries = setInterval(() => {
    if (mine !== run) return clearInterval(tries);
    const left = Math.ceil((until - performance.now()) / 1000);
    badge("down", `disconnected, retry in ${Math.max(left, 0)} s`);
    if (left > 0) return;
    clearInterval(tries);
    connect();
  }, 200);
}
async function connect() {
  if (!entry.hidden) return; // an entry connects
  const mine = ++run;
  badge("busy", "connecting");
  try {
    const answer = await request(`/sessions/${session}`, { once: true });
    if (mine !== run) return;
    // A page opened on a session that has been cleared away starts afresh.
    if (answer.status === 404) return last === null || isNewcomer ? open(null) : gone("This session does not exist.");
    if (!answer.ok) return retry(mine);
    const it = await answer.json(), parent = it.parent_session_id;
    $("parent").hidden = !parent;
    if (parent) $("parent").href = `#${parent}`;
    socket?.close();
    socket = new WebSocket(it.ws_url);
  } catch { return retry(mine); }
  socket.onopen = () => { heard = performance.now(); subscribe(last === null); };
  socket.onmessage = (event) => { if (mine === run) frame(event.data); };
  socket.onclose = (event) => closed(mine, event);
}
async function call(path, body, more = {}) {
  const headers = { "content-type": "application/json", ...more.headers };
  const answer = await request(path, { method: "POST", body: JSON.stringify(body), ...more, headers });
  return { ok: answer.ok, status: answer.status, body: await answer.json() };
}
async function open(id) {
  run += 1;
  socket?.close();
  try {
    if (!id) {
      const made = await call("/sessions", {});
      if (!made.ok) throw new Error(made.body.detail);
      id = made.body.session_id;
    }
  } catch (error) {
    badge("down", "disconnected");
    return notice(`No session could be made: ${error.message}`);
  }
  session = id; last = null; attempt = 0;
  clear();
  conversation.follow();
  eventList.follow();
  posting = asked = null;
  setTurn(null);
  notice("");
  memory.set(id);
  history.replaceState(null, "", `#${id}`);
  $("session").textContent = visible(id);
  connect();
}
