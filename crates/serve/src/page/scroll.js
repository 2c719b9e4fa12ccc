// Following the end. Text that grows moves the end away and fires scroll events of its own, so only
// a person's wheel, touch, key or scroll bar leaves the end: any movement up by hand does, however
// small, and a movement down that comes near the end follows it again.
const END_PX = 40, HAND_MS = 1000, START_MS = 150, STEP_PX = 2;
const UP_KEYS = new Set(["ArrowUp", "PageUp", "Home", " "]);
class Follower {
  constructor(box, jump) {
    Object.assign(this, { box, jump, following: true, top: 0, height: 0, room: 0, hand: -HAND_MS, start: -START_MS, held: false, due: 0 });
    // `start`: a movement up may be about to begin, which going to the end would stop.
    const moved = (isUp) => { this.hand = performance.now(); if (isUp) this.start = this.hand; };
    box.addEventListener("wheel", (event) => moved(event.deltaY < 0), { passive: true });
    box.addEventListener("touchmove", () => moved(true), { passive: true });
    box.addEventListener("keydown", (event) => moved(UP_KEYS.has(event.key)), { passive: true });
    box.addEventListener("pointerdown", () => { this.held = true; });
    for (const kind of ["pointerup", "pointercancel"]) window.addEventListener(kind, () => { this.held = false; });
    box.addEventListener("scroll", () => this.scrolled());
    // Whatever changes what is shown, or the room for it.
    const changed = () => this.settle();
    new MutationObserver(changed).observe(box, { childList: true, characterData: true, subtree: true });
    new ResizeObserver(changed).observe(box);
    if (jump) jump.onclick = () => { this.follow(); input.focus(); };
  }
  atEnd() { return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < END_PX; }
  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.box, moved = scrollTop - this.top;
    if (moved < 0 && moved > -STEP_PX) return; // rounding; several add up
    const byHand = this.held || performance.now() - this.hand < HAND_MS;
    // The browser moves up what is at the end when there is less to show, or more room.
    const byLayout = (scrollHeight < this.height || clientHeight > this.room) && scrollHeight - scrollTop - clientHeight < 2;
    if (byHand && moved < 0 && !byLayout) this.following = false;
    else if (moved > 0 && this.atEnd()) this.following = true;
    if (byHand && moved) this.hand = performance.now(); // a swipe runs on
    this.note();
  }
  note() {
    [this.top, this.height, this.room] = [this.box.scrollTop, this.box.scrollHeight, this.box.clientHeight];
    this.offer();
  }
  follow() { this.following = true; this.start = -START_MS; this.note(); this.settle(); }
  // Once a frame, after the frame's changes.
  settle() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      this.scrolled(); // a movement whose event is yet to come
      if (!this.following) return;
      if (performance.now() - this.start < START_MS) return this.settle();
      this.box.scrollTop = this.box.scrollHeight;
      this.note();
    });
  }
  offer() { if (this.jump) this.jump.hidden = this.following || this.atEnd(); }
}
const conversation = new Follower(log, $("jump")), eventList = new Follower(list, null);

// Elements stand in the order of their turns, and within a turn in the order of the ids that they
// have: ids sort by time. Those without an id come as they come. `within` and `since` are the turn and
// the message of what is being shown.
let within = "", since = "";
function show(element, id = since) {
  const { dataset } = element;
  [dataset.turn, dataset.id] = [within, id];
  let at = log.lastElementChild;
  if (within) while (at && at.dataset.turn > within) at = at.previousElementSibling;
  if (id) while (at && at.dataset.turn === within && at.dataset.id > id) at = at.previousElementSibling;
  if (at) at.after(element); else log.prepend(element);
}
