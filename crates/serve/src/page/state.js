"use strict";
const EVENTS_MAX = 500, PAST_PAGES_MAX = 10, PAGE_EVENTS = 1000, PAST_TRIES_MAX = 4, PAST_S = 10, RETRY_MAX_S = 15, SILENCE_S = 45, STOP_S = 10, LINES_MAX = 5000, LOOK_MS = 700;
const $ = (id) => document.getElementById(id);
const log = $("log"), list = $("events"), input = $("input");
const memory = {
  get: () => { try { return localStorage.getItem("turnwire.session"); } catch { return null; } },
  set: (id) => { try { localStorage.setItem("turnwire.session", id); } catch { /* private window */ } },
};

// What is known of the session. `last` is the cursor: everything up to it has been shown.
let session = null, socket = null, last = null, turn = null, attempt = 0, run = 0, missing = 0, heard = 0;
let workers = new Map(), asks = new Map(), stopping = null;
let messages = new Map(), tools = new Map(), shown = new Set(), pending = [], seen = 0, tries = null;
let actor = ""; // whose event is being shown

let ended = null; // a turn's end may arrive before the answer to the post that began it
let posting = null; // the key of a message that is on its way; by it its turn can be stopped already
let asked = null; // a stop that was asked for, until its turn is over
function setTurn(id) {
  if (turn && !id) notice("");
  if (id !== turn) stopping = null;
  if (id !== turn && (turn || !posting)) asked = null;
  if (!id) status("");
  turn = id;
  button();
  log.setAttribute("aria-busy", String(Boolean(id)));
}
function button() {
  const idle = !(turn || posting) || asked !== null || stopping !== null;
  // A button that is switched off drops the focus to nowhere.
  if (idle && document.activeElement === $("stop")) input.focus({ preventScroll: true });
  $("stop").disabled = idle;
  if (!stopping) $("stop").textContent = asked ? "Stop requested" : "Stop";
}
