// A slider over a field's usual values and a box for any other, in step with each other before the server is asked.
// While it is dragged the server is told now and then ("live"), one question at a time; the value it is let go at is sent last.
export default function ({ parentElement, data, setStateValue }) {
  const root = parentElement;
  const [label, help, words, box, range] = ["label", ".help", "[popover]", "[type=number]", "[type=range]"].map((one) =>
    root.querySelector(one));
  const mine = (root.mine ??= { sent: null, asked: 0 });
  label.textContent = data.label;
  words.textContent = data.help;
  help.setAttribute("aria-label", data.helping);
  box.setAttribute("aria-label", data.exact);
  box.parentElement.className = `st-key-${data.key}_exact`;
  box.min = data.min;
  box.max = data.max;
  range.max = data.stops.length - 1;

  const show = (value) => {
    let place = data.stops.findIndex((stop) => stop >= value);
    if (place < 0) place = data.stops.length - 1;
    range.value = place;
    range.setAttribute("aria-valuetext", value.toLocaleString(data.language));
    range.style.setProperty("--fill", `${(100 * place) / (data.stops.length - 1)}%`);
    if (root.activeElement !== box || Number(box.value) !== value) box.value = value;
  };
  const send = (value, live) => {
    mine.sent = value;
    mine.asked = performance.now();
    // The time makes it news: the same value may be set again after another way has changed it.
    setStateValue("value", [value, live, Date.now()]);
  };
  // What the visitor has set stands until the server has answered it, or has had time enough.
  if (mine.sent === data.value || performance.now() - mine.asked > 4000) mine.sent = null;
  if (mine.sent === null && !mine.dragged) show(data.value);

  range.oninput = () => {
    const value = data.stops[range.value];
    show(value);
    if (mine.dragged && mine.sent === null) send(value, true);
  };
  range.onpointerdown = () => { mine.dragged = true; };
  range.onpointerup = range.onpointercancel = () => { mine.dragged = false; };
  range.onchange = () => { mine.dragged = false; send(data.stops[range.value], false); };
  box.onchange = () => {
    const value = Math.min(data.max, Math.max(data.min, Math.round(Number(box.value))));
    if (!Number.isFinite(value) || box.value === "") { show(data.value); return; }
    show(value);
    if (value !== data.value || mine.sent !== null) send(value, false);
  };
  words.ontoggle = (event) => {
    if (event.newState !== "open") return;
    const place = help.getBoundingClientRect();
    words.style.left = `${Math.max(8, Math.min(place.left, innerWidth - words.offsetWidth - 8))}px`;
    words.style.top = `${Math.max(8, place.top - words.offsetHeight - 6)}px`;
  };
  help.onmouseenter = () => words.showPopover();
  help.onmouseleave = () => words.hidePopover();
}
