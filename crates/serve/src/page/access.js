// Access: where the server asks for a token, a person enters it. It is kept for this tab only, and is
// sent in a header: never in a URL, and never in the document.
const TOKEN = "turnwire.token", entry = $("entry"), field = $("token");
let token = null, entered = Promise.resolve(), admit = null;
let isNewcomer = false; // from an entry until the session is open: it may be of somebody else
const refusals = {
  missing: "This server needs an access token. Enter yours.",
  invalid: "This token is not valid here. Check it, and enter it again.",
  ended: "The token is no longer valid. Enter a new one.",
  expired: "The token has expired. Enter a new one.",
  identity_expired: "The token has expired. Enter a new one.",
  identity_revoked: "The token was revoked. Enter a new one.",
  not_yet_valid: "The token is not valid yet. Enter another one.",
  wrong_audience: "The token is for another service. Enter another one.",
  unusable: "The token names nobody whom this server knows. Enter another one.",
  own: "The token does not allow conversations. Enter another one.",
  out: "You have signed out. Enter a token to sign in.",
};
function keep(value) {
  token = value;
  $("leave").hidden = !value;
  try {
    if (value) sessionStorage.setItem(TOKEN, value); else sessionStorage.removeItem(TOKEN);
  } catch { /* no storage: kept until the page is closed */ }
}
function explain(text, isInvalid = false) {
  $("why").textContent = visible(text);
  field.setAttribute("aria-invalid", String(isInvalid));
}
function showEntry(isShown) {
  entry.hidden = !isShown;
  $("fresh").disabled = document.querySelector("footer").hidden = isShown;
  (isShown ? field : input).focus();
}
// Ends the connection and asks for a token; who needs one waits for `entered`.
function signIn(text) {
  run += 1;
  clearInterval(tries);
  socket?.close();
  keep(null);
  notice("");
  badge("down", "signed out");
  if (entry.hidden) {
    entered = new Promise((resolve) => { admit = resolve; });
    showEntry(true);
  }
  explain(text);
}
// Why the server wants another token; null if it does not.
async function refusal(answer) {
  if (![401, 403].includes(answer.status)) return null;
  const problem = await answer.clone().json().catch(() => ({}));
  const name = answer.status === 401 ? problem.reason : problem.scope;
  return refusals[name] ? name : null;
}
const bearer = (value) => (value ? { authorization: `Bearer ${value}` } : {});
// A fetch with the token. If that is refused, it is sent again with the next one, unless it is to be sent `once`.
async function request(path, { once = false, ...options } = {}) {
  for (;;) {
    if (!once) await entered;
    const used = token, answer = await fetch(path, { ...options, headers: { ...options.headers, ...bearer(used) } });
    const name = await refusal(answer);
    if (!name) return answer;
    if (used === token) signIn(refusals[name === "invalid" ? "ended" : name]);
    if (once) return answer;
  }
}
entry.onsubmit = async (event) => {
  event.preventDefault();
  const value = field.value.trim();
  if (!value || $("enter").disabled) return;
  if (/[^!-~]/.test(value)) return explain(refusals.invalid, true);
  $("enter").disabled = true;
  $("why").textContent = ""; // the same words again are news
  try {
    const answer = await fetch("/sessions?limit=1", { headers: bearer(value) }), name = await refusal(answer);
    if (name) return explain(refusals[name], true);
    if (!answer.ok) return explain(`${(await answer.json()).detail} Try again.`);
  } catch {
    return explain("The server did not answer. Try again.");
  } finally { $("enter").disabled = false; }
  field.value = "";
  keep(value);
  showEntry(false);
  if (held) last = null; // a history that was half read begins anew
  attempt = 0;
  isNewcomer = true;
  if (session) connect();
  admit();
};
$("leave").onclick = () => {
  signIn(refusals.out);
  last = posting = asked = unsure = null;
  setTurn(null);
  clear();
  input.value = "";
};
try { keep(sessionStorage.getItem(TOKEN)); } catch { /* no storage */ }
