// What cannot be seen is written out. Messages keep joiners, marks of direction, soft hyphens and the
// forms of emoji, which languages need; everything else keeps line ends, tabs and spaces; what a
// person approves keeps nothing.
const codes = (text) => text.replace(/./gsu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
const words = (text) => text.replace(/(?![\n\r\t\u00ad\u061c\u200c-\u200f\ufe0e\ufe0f])[\p{Cc}\p{Zl}\p{Zp}\p{DI}\ufff9-\ufffb]/gu, codes);
const visible = (text) => text.replace(/(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{DI}]/gu, codes);
const exact = (text) => text.replace(/(?! )[\p{C}\p{Z}\p{DI}\u2800\ufff9-\ufffc\u{1d159}]|(?<![\p{L}\p{M}])\p{M}+|(?<=\p{M}{8})\p{M}+/gu, codes);
function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = visible(text);
  return element;
}
// JSON text with each field and element on a line of its own, and nothing else changed.
function layout(json) {
  const lines = [""], add = (text) => { lines[lines.length - 1] += text; };
  let depth = 0;
  const begin = (deeper) => { depth += deeper; if (lines.length < LINES_MAX) lines.push("  ".repeat(Math.min(depth, 32))); };
  for (let at = 0, end; at < json.length; at = end) {
    const c = json[at];
    end = at + 1;
    if (c === '"') { while (end < json.length && json[end] !== '"') end += json[end] === "\\" ? 2 : 1; add(json.slice(at, ++end)); }
    else if ("{[".includes(c) && "}]".includes(json[end])) { end += 1; add(json.slice(at, end)); }
    else if ("{[".includes(c)) { add(c); begin(1); }
    else if ("}]".includes(c)) { begin(-1); add(c); }
    else if (c === ",") { add(c); begin(0); }
    else add(c === ":" ? ": " : c);
  }
  return lines;
}
function badge(state, text) { $("badge").dataset.state = state; $("badge").textContent = text; }
function notice(text) {
  $("notice")?.remove();
  if (!text) return;
  const line = make("div", "", text);
  line.id = "notice";
  line.setAttribute("role", "alert");
  document.querySelector("footer").before(line);
}
