// A table whose rows open. Everything is set as text, never as markup, because labels may hold a stranger's words.
// What an opened row shows is asked for when the first one opens: until it comes, the row says so.
export default function ({ parentElement, data, setStateValue }) {
  const colours = getComputedStyle(parentElement.host ?? parentElement)
    .getPropertyValue("--st-chart-categorical-colors").split(",");
  const make = (tag, cls, text) => {
    const element = document.createElement(tag);
    if (cls) element.className = cls;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const list = parentElement.querySelector("ol");
  const open = new Set([...list.querySelectorAll("details[open]")].map((row) => row.dataset.id));
  const tell = () => {
    const now = String(list.querySelector("details[open]") !== null);
    if ((list.dataset.opened ?? "false") === now) return;
    list.dataset.opened = now;
    setStateValue("opened", now === "true");
  };
  const cells = (row) => {
    const chip = make("span", "chip");
    const label = make("span", "label", row.label);
    const bar = make("span", "bar");
    if (row.colour === undefined) {
      bar.style.visibility = "hidden";
    } else {
      chip.style.background = colours[row.colour];
      const fill = make("i");
      fill.style.width = `${row.share * 100}%`;
      fill.style.background = colours[row.colour];
      bar.append(fill);
    }
    if (row.detail) label.append(make("small", "", row.detail));
    return [chip, label, bar, make("span", "size", row.size), make("span", "certainty", row.certainty)];
  };
  list.setAttribute("aria-label", data.title);
  list.replaceChildren(...data.rows.map((row) => {
    const item = make("li");
    if (!row.facts) {
      const total = make("div", "total");
      total.append(...cells(row));
      item.append(total);
      return item;
    }
    const details = make("details");
    details.dataset.id = row.id;
    details.open = open.has(row.id);
    const summary = make("summary");
    summary.append(...cells(row));
    const facts = make("dl");
    for (const fact of row.facts.length ? row.facts : [{ name: "", text: data.wait }]) {
      const words = make({ code: "code", link: "a" }[fact.kind] ?? "span", "", fact.text);
      if (fact.link) {
        words.href = fact.link;
        words.target = "_blank";
        words.rel = "noreferrer";
      }
      const value = make("dd");
      value.append(words);
      facts.append(make("dt", "", fact.name), value);
    }
    details.ontoggle = tell;
    details.append(summary, facts);
    item.append(details);
    return item;
  }));
  tell();
}
