"use strict";
// Everything below builds elements and sets text; nothing of the page's data is ever parsed as markup.
const page = JSON.parse(document.getElementById("page").textContent);
// On a phone a row is a card: one line for each column but those of single plugins.
const PHONE = matchMedia("(max-width: 40rem)").matches;
const AHEAD = 12;
const STEP = 500;
const WIDEST = 64;
const FEW = 100;
// The width of a page and of a letter in pixels, and the widths of long columns that are tried until all fit.
const WIDEST_PAGE = 1440, LETTER = 8.7, CAPS = [WIDEST, 48, 32, 24, 20, 18, 16, 14, 12, 10, 8];
// The most letters of a table beside which its story fits: the table has two thirds of the window.
const WIDEST_BESIDE = Math.min(100, innerWidth / 15);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "style") Object.assign(element.style, value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const number = (value) => value.toLocaleString("en-US");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

// What is too much for a page.
const left_out = (count, noun) => count
  ? make("p", {class: "label"}, `${plural(count, `more ${noun}`).replace("entrys", "entries")}: -o json lists all`) : "";

function section(title, ...children) {
  const made = make("section", {}, make("h2", {}, title), ...children);
  document.getElementById("sections").append(made);
  return made;
}

// The page's state is its address: `#nodes.q=gpu&nodes.sort=-2&nodes.kind=blocked` opens the same view again.
const address = new URLSearchParams(location.hash.slice(1));
function remember(key, value) {
  if (value === "" || value === null) address.delete(key);
  else address.set(key, value);
  history.replaceState(null, "", `#${address}`);
}
// Another state that is pasted into the same window.
addEventListener("hashchange", () => { if (location.hash !== "#sections") location.reload(); });

// Buttons with counts, one of which is pressed at a time.
function chips(label, key, counts, choose) {
  const chosen = () => address.get(key) || "";
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || order(a[0], b[0]));
  const buttons = sorted.map(([name, number_of]) => make("button", {
    type: "button", class: "chip", "aria-pressed": String(chosen() === name), "data-name": name, onclick: () => {
      remember(key, chosen() === name ? "" : name);
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.name === chosen())));
      choose();
    }}, `${name} ${number(number_of)}`));
  return buttons.length > 1 && buttons.length <= 40
    ? make("div", {class: "chips", role: "group", "aria-label": label}, make("span", {class: "label"}, label), ...buttons) : "";
}

// Details that are open or not, and stay so in the address.
function fold(key, label, ...content) {
  const made = make("details", {}, make("summary", {onclick: () => remember(key, made.open ? "" : "1")}, label), ...content);
  made.open = address.has(key);
  return made;
}

// A button that is pressed or not, and stays so in the address.
function toggle(label, key, choose) {
  const made = make("button", {type: "button", "aria-pressed": String(address.has(key)), onclick: () => {
    remember(key, address.has(key) ? "" : "1");
    made.setAttribute("aria-pressed", String(address.has(key)));
    choose(address.has(key));
  }}, label);
  return made;
}

function tally(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
  return counts;
}

// A sortable, filterable list of rows of which only those in sight are in the page.
// columns: {label, turned, compare(a, b), cell(row) -> element}; text(row) is what the filter looks into, keep(row) the chips.
// No text is cut: a few rows are as high as each needs, more are all as high as the highest that was in sight needs.
// name(row) is what the address keeps of the row that is chosen, pick(row) the elements of its story; print has all of them.
// A row stands for size(row) of what the noun says, and parts(row) are rows of their own; merge(row, some) is the row of those
// parts that the filter and the chips leave.
function grid({label, template, columns, rows, text, pick, noun, name, keep = () => true, size = () => 1, parts = (row) => [row], merge}) {
  const story = make("aside", {class: "story", "aria-live": "polite", tabindex: "0"}, `Choose a ${noun}.`);
  let ROW = 26;
  if (PHONE) template = "minmax(0, 1fr)";
  const sort_key = `${label}.sort`, word_key = `${label}.q`;
  const at_first = Number(address.get(sort_key) || 0);
  let shown = rows, selected = null, sorted = {column: Math.abs(at_first) - 1, up: at_first >= 0};
  const words = new Map();
  const count = make("span", {class: "count", role: "status"});
  const filter = make("input", {type: "search", placeholder: "filter", "aria-label": `filter ${label}`,
    oninput: () => { remember(word_key, filter.value); refresh(); }});
  filter.value = address.get(word_key) || "";
  const head = make("div", {class: "row head", role: "row", style: {gridTemplateColumns: template}});
  const canvas = make("div", {style: {position: "relative"}});
  const frame = make("div", {class: "grid", role: "grid", tabindex: "0", "aria-label": label, onscroll: draw, onkeydown: key}, head, canvas);
  const buttons = columns.map((column, index) => {
    const button = make("button", {type: "button", onclick: () => sort(index)}, column.label);
    const kind = column.turned ? "turned extra" : `${column.number ? "number" : ""} ${column.wide ? "extra" : ""}`;
    head.append(make("div", {role: "columnheader", class: kind}, button));
    return button;
  });

  function sort(index) {
    if (!columns[index]) return;
    sorted = {column: index, up: sorted.column === index ? !sorted.up : !columns[index].down};
    remember(sort_key, (sorted.up ? 1 : -1) * (index + 1));
    refresh();
  }
  function words_of(row) {
    if (!words.has(row)) words.set(row, text(row).toLowerCase());
    return words.get(row);
  }
  function refresh() {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const left = (row) => keep(row) && wanted.every((word) => words_of(row).includes(word));
    shown = rows.flatMap((row) => {
      const all = parts(row), some = all.filter(left);
      return some.length === all.length ? [row] : some.length ? [merge(row, some)] : [];
    });
    buttons.forEach((button, at) => button.parentElement.setAttribute(
      "aria-sort", at !== sorted.column ? "none" : sorted.up ? "ascending" : "descending"));
    if (sorted.column >= 0 && columns[sorted.column]) {
      const compare = columns[sorted.column].compare;
      shown.sort((a, b) => (sorted.up ? compare(a, b) : compare(b, a)));
    }
    if (selected && !shown.includes(selected)) {
      const again = shown.find((row) => parts(row).some((part) => parts(selected).includes(part)));
      if (again) select(again);
    }
    const [some, all] = [shown, rows].map((these) => these.reduce((sum, row) => sum + size(row), 0));
    count.textContent = (some === all ? plural(all, noun) : `${number(some)} of ${plural(all, noun)}`) + (some === shown.length ? "" : ` in ${plural(shown.length, "row")}`);
    frame.setAttribute("aria-rowcount", shown.length + 1);
    draw();
  }
  function draw() {
    const whole = printing || shown.length <= FEW;
    canvas.style.height = whole ? "auto" : `${shown.length * ROW}px`;
    const top = whole ? 0 : Math.max(0, Math.floor(frame.scrollTop / ROW) - AHEAD);
    const height = whole ? shown.length : Math.ceil((frame.clientHeight || 600) / ROW) + 2 * AHEAD;
    const end = Math.min(shown.length, top + height);
    const made = [];
    for (let at = top; at < end; at++) {
      const row = shown[at];
      made.push(make("div", {
        class: "row body", role: "row", "aria-rowindex": at + 2, "aria-selected": row === selected,
        style: whole ? {gridTemplateColumns: template, position: "relative", height: "auto", minHeight: "26px"}
          : {gridTemplateColumns: template, top: `${at * ROW}px`, height: `${ROW}px`}, onclick: () => select(row),
      }, ...columns.map((column, index) => {
        const made = column.cell(row);
        if (PHONE) made.classList.toggle("extra", Boolean(column.turned || column.wide));
        // Paper shows what a pointer would.
        if (printing && made.title && !made.textContent.endsWith(made.title)) {
          if (made.lastChild instanceof Text) made.lastChild.data = made.title;
          else made.append(make("span", {class: "label"}, made.title));
        } else if (index && (PHONE || printing)) made.dataset.label = column.label;
        if ((PHONE || printing) && !made.textContent && !made.childElementCount) made.style.display = "none";
        return made;
      }), ...(printing && pick ? [make("div", {class: "detail"}, ...pick(row))] : [])));
    }
    canvas.replaceChildren(...made);
    const needed = whole ? 0 : Math.max(...made.map((one) => one.scrollHeight + one.offsetHeight - one.clientHeight));
    if (needed > ROW) {
      const at = frame.scrollTop / ROW;
      ROW = needed;
      canvas.style.height = `${shown.length * ROW}px`;
      frame.scrollTop = at * ROW;
      draw();
    }
  }
  function select(row) {
    selected = row;
    remember(`${label}.open`, name(row));
    draw();
    if (pick) story.replaceChildren(...pick(row));
  }
  function key(event) {
    if (event.key === "Enter" && shown.length) { select(selected || shown[0]); return; }
    if (event.key === "j" || event.key === "k") event.stopPropagation();
    const step = {ArrowDown: 1, j: 1, k: -1, ArrowUp: -1, PageDown: 20, PageUp: -20}[event.key];
    if (!step || !shown.length) return;
    event.preventDefault();
    const at = Math.min(shown.length - 1, Math.max(0, shown.indexOf(selected) + step));
    select(shown[at]);
    into_sight(shown[at]);
  }
  function into_sight(row) {
    const at = shown.indexOf(row), one = shown.length <= FEW ? canvas.children[at] : null;
    const [top, high] = one ? [one.offsetTop, one.offsetHeight] : [at * ROW, ROW];
    if (top < frame.scrollTop || top + high + head.offsetHeight > frame.scrollTop + frame.clientHeight) frame.scrollTop = top - 3 * ROW;
  }
  addEventListener("resize", () => { ROW = 26; refresh(); });
  redraws.push(draw);
  tables.push({frame, filter, sort, key});
  requestAnimationFrame(refresh);
  return {
    frame, story, refresh, tools: make("div", {class: "tools"}, filter, count),
    show(next) { rows = next; selected = null; refresh(); },
    // Opens the row of the address, else this one.
    open(first) {
      const wanted = address.get(`${label}.open`);
      requestAnimationFrame(() => {
        const found = [...shown, ...rows].find((row) => name(row) === wanted) || (shown.includes(first) || first === undefined ? first : shown[0]);
        if (found !== undefined) { select(found); into_sight(found); }
      });
    },
  };
}

// Keys work anywhere on the page, for the table that was used last.
const KEYS = [["j k", "next and previous row"], ["1 to 9", "sort by a column; again for the other way"], ["/", "filter"],
  ["[ ]", "previous and next table"], ["Esc", "leave the filter"], ["?", "show these keys"]];
const tables = [];
let current = 0;
const help = make("dialog", {"aria-label": "keys"}, make("dl", {}, ...KEYS.flatMap(([name, text]) => [make("dt", {class: "mono"}, name), make("dd", {}, text)])),
  make("form", {method: "dialog"}, make("button", {}, "close")));
document.body.append(help);
document.querySelector("footer").append(make("button", {type: "button", class: "chip", onclick: () => help.showModal()}, "? keys"));
addEventListener("focusin", (event) => {
  const at = tables.findIndex((table) => table.frame.contains(event.target) || table.filter === event.target);
  if (at >= 0) current = at;
});
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || help.open) return;
  if (event.target.matches("input[type=search], textarea")) { if (event.key === "Escape") tables[current].frame.focus(); return; }
  if (event.key === "?") { help.showModal(); return; }
  const table = tables[current];
  if (!table) return;
  if (event.key === "/") { event.preventDefault(); table.filter.focus(); }
  else if (event.key === "[" || event.key === "]") {
    current = (current + (event.key === "]" ? 1 : tables.length - 1)) % tables.length;
    tables[current].frame.focus();
  } else if (/^[1-9]$/.test(event.key)) table.sort(Number(event.key) - 1);
  else if (event.key === "j" || event.key === "k") table.key(event);
});

let printing = false;
const redraws = [];
addEventListener("beforeprint", () => {
  printing = true;
  redraws.forEach((draw) => draw());
  document.querySelectorAll("details:not([open])").forEach((one) => { one.open = one.printed = true; });
});
addEventListener("afterprint", () => {
  printing = false;
  redraws.forEach((draw) => draw());
  document.querySelectorAll("details").forEach((one) => { if (one.printed) one.open = one.printed = false; });
});

// node-9 comes before node-10, and 900Mi before 1Gi.
const order = new Intl.Collator("en", {numeric: true}).compare;
const by = (value) => (a, b) => { const x = value(a), y = value(b); return typeof x === "number" && typeof y === "number" ? x - y : order(x, y); };
const UNITS = {m: 1e-3, k: 1e3, Ki: 2 ** 10, M: 1e6, Mi: 2 ** 20, G: 1e9, Gi: 2 ** 30, T: 1e12, Ti: 2 ** 40};
function quantity(value) {
  if (typeof value === "number") return value;
  const [, amount, unit] = value.match(/^(-?[\d.,]+)([A-Za-z]*)/) || [];
  return amount === undefined ? -Infinity : Number(amount.replaceAll(",", "")) * (UNITS[unit] || 1);
}
// The parts of a text, between which it may take another line: those of a label or taint, and the words.
const parts_of = (text) => String(text).split(/(?<=[\s,=:/-]|[a-z]\.)/);
const cell = (text, kind = "") => make("div", {role: "gridcell", class: kind, title: text},
  ...(typeof text === "string" && !kind ? parts_of(text).flatMap((part, at) => at ? [make("wbr"), part] : [part]) : [text]));
// A column as wide as its longest text; a wider window widens columns in proportion to it. A letter is narrower than a digit.
const letters_of = (texts, most = WIDEST) => Math.min(most, texts.reduce((found, text) => Math.max(found, String(text).length), 0) + 3);
function column_width(least, texts, most = WIDEST) {
  const letters = Math.max(least, letters_of(texts, most));
  return `minmax(${0.9 * letters}ch, ${letters}fr)`;
}

const LOOK = {
  "Success": ["c-pass", "·"], "Unschedulable": ["c-reject", "×"], "UnschedulableAndUnresolvable": ["c-never", "■"],
  "Error": ["c-error", "!"], "not evaluated": ["c-none", ""],
};
const look = (code) => LOOK[code] || ["c-error", "?"];

const DRAW = {
  verdicts(data) {
    const cells = (node) => data.patterns[data.pattern_of[node]];
    const passes = (node) => data.verdict_of[node] < 0;
    const rejections = (node) => cells(node).filter((code) => data.codes[code] !== "Success" && data.codes[code] !== "not evaluated").length;
    const headline = (node) => {
      if (passes(node)) return "fits";
      const line = data.stories[data.story_of[node]][0];
      return line ? `${line[0]} · ${line[2]}` : data.plugins[data.verdict_of[node]];
    };
    const chosen = ({node}) => {
      const reason = address.get("verdicts.reason") || "";
      return (!reason || reason === verdict(node)) && data.facets.every((facet) => {
        const wanted = address.get(`verdicts.${facet.label}`) || "";
        return !wanted || facet.values[facet.of[node]] === wanted;
      });
    };
    const verdict = (node) => passes(node) ? "fits" : data.plugins[data.verdict_of[node]];
    const nodes = data.nodes.map((_, node) => ({node, members: [node]}));
    const group = (members) => members.length > 1 ? {node: members[0], members} : nodes[members[0]];
    const groups = data.groups.map(group);
    // A node with its zone, pool, and instance type.
    const place = (node) => [data.nodes[node], ...data.facets.map((facet) => `${facet.label} ${facet.values[facet.of[node]]}`)].join(" · ");
    const label = (row) => row.members.length > 1 ? `${data.nodes[row.node]} and ${number(row.members.length - 1)} more` : data.nodes[row.node];
    const columns = [
      {label: "node", compare: by((row) => data.nodes[row.node]), cell: (row) => cell(label(row))},
      {label: "nodes", number: true, down: true, compare: by((row) => row.members.length), cell: (row) => cell(number(row.members.length), "number")},
      ...data.plugins.map((plugin, at) => ({
        label: plugin, turned: true, down: true, compare: by((row) => cells(row.node)[at]),
        cell: (row) => {
          const code = data.codes[cells(row.node)[at]], [kind, mark] = look(code);
          const verdict = data.verdict_of[row.node] === at ? " verdict" : "";
          return make("div", {role: "gridcell", class: `cell ${kind}${verdict}`, title: `${plugin}: ${code}`, "aria-label": `${plugin}: ${code}`}, mark);
        },
      })),
      {label: "why", compare: by((row) => headline(row.node)), cell: (row) => cell(headline(row.node))},
    ];
    const table = grid({
      label: "verdicts", noun: "node", columns, rows: address.has("verdicts.each") ? nodes : groups, pick: tell, keep: chosen,
      name: (row) => data.nodes[row.node], size: (row) => row.members.length,
      parts: (row) => row.members.map((node) => nodes[node]), merge: (_, some) => group(some.map(({node}) => node)),
      template: `${column_width(18, groups.map(label), 40)} 4rem repeat(${data.plugins.length}, 24px) ${column_width(24, groups.map((row) => headline(row.node)), 26)}`,
      text: (row) => [data.nodes[row.node], headline(row.node),
        ...data.stories[data.story_of[row.node]].map((line) => `${line[0]} ${line[2]}`)].join(" "),
    });
    function tell(row) {
      const stands = make("p", {class: "label"}, row.members.length > 1 ? `stands for ${plural(row.members.length, "node")}` : place(row.node));
      const fits = passes(row.node) && !rejections(row.node) ? [make("p", {}, "fits: every plugin lets the pod pass")] : [];
      // Nodes of a group may differ in numbers; paper has them all.
      const stories = printing && row.members.length > 1 ? [...new Set(row.members.map((node) => data.story_of[node]))] : [];
      return [make("h3", {}, data.nodes[row.node]), stands, ...fits, ...(stories.length ? stories.flatMap((story) => [
        make("ul", {class: "mono"}, ...row.members.filter((node) => data.story_of[node] === story).map((node) => make("li", {}, place(node)))),
        ...account(story)]) : account(data.story_of[row.node]))];
    }
    const account = (story) => data.stories[story].flatMap(([plugin, code, told, facts]) => [
      ...(plugin ? [make("p", {class: "headline"}, `✗ ${plugin} · ${told}`), make("p", {class: "label"}, code)] : []),
      make("dl", {}, ...(facts || []).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {class: "mono"}, text)])),
    ]);
    const each = toggle("every node", "verdicts.each", (on) => table.show(on ? nodes : groups));
    table.tools.prepend(each);
    const legend = make("div", {class: "legend"}, ...["Success", "Unschedulable", "UnschedulableAndUnresolvable", "Error"].map((code) =>
      make("span", {}, make("span", {class: `key cell ${look(code)[0]}`}, look(code)[1]), code)),
      make("span", {}, "framed: the plugin that kube-scheduler stops at"));
    const again = () => { table.refresh(); paint(); };
    const all = data.nodes.map((_, node) => node);
    const facets = [chips("reason", "verdicts.reason", tally(all.map(verdict)), again),
      ...data.facets.map((facet) => chips(facet.label, `verdicts.${facet.label}`, tally(all.map((node) => facet.values[facet.of[node]])), again))];
    const map = make("div", {class: "heat"});
    const places = () => data.facets.find((facet) => facet.label === address.get("verdicts.by")) || data.facets[0];
    const bases = data.facets.map((facet) => make("button", {type: "button", class: "chip", onclick: () => {
      remember("verdicts.by", facet === data.facets[0] ? "" : facet.label);
      paint();
    }}, facet.label));
    function paint() {
      const facet = places();
      bases.forEach((button, at) => button.setAttribute("aria-pressed", String(data.facets[at] === facet)));
      const by_place = new Map();
      for (const node of all) {
        const place = facet ? facet.values[facet.of[node]] : "nodes";
        if (!by_place.has(place)) by_place.set(place, tally([]));
        const reasons = by_place.get(place);
        reasons.set(verdict(node), (reasons.get(verdict(node)) || 0) + 1);
      }
      map.replaceChildren(...[...by_place].map(([place, reasons]) => {
        const total = [...reasons.values()].reduce((sum, value) => sum + value, 0);
        return make("div", {class: "heatrow"}, make("span", {class: "label"}, `${place} (${number(total)})`),
          make("span", {class: "heatbar"}, ...[...reasons].sort().map(([reason, many]) => make("button", {
            type: "button", class: reason === "fits" ? "c-pass" : "", title: `${place}: ${reason}, ${plural(many, "node")}`,
            "aria-label": `${place}: ${reason}, ${plural(many, "node")}`,
            style: {flexGrow: many, borderBottomColor: reason === "fits" ? "" : colour(reason)},
            onclick: () => {
              remember("verdicts.reason", address.get("verdicts.reason") === reason ? "" : reason);
              if (facet) remember(`verdicts.${facet.label}`, address.get("verdicts.reason") ? place : "");
              again();
            }}, `${reason} ${number(many)}`))));
      }));
      if (!printing) requestAnimationFrame(() => map.querySelectorAll("button").forEach((button) => { if (button.scrollWidth > button.clientWidth) button.replaceChildren(); }));
    }
    paint();
    redraws.push(paint);
    const basis = bases.length > 1 ? make("div", {class: "chips", role: "group", "aria-label": "heat map by"}, make("span", {class: "label"}, "heat map by"), ...bases) : "";
    section("Nodes", ...facets, basis, map, table.tools, legend, make("div", {class: "split"}, table.frame, table.story));
    table.open(groups.find((row) => !passes(row.node)) || groups[0]);
  },

  scores(data) {
    let unit = address.get("scores.unit") || "weighted";
    const value = (node, at) => unit === "raw" ? data.raw[node][at] : unit === "normalized" ? data.normalized[node][at] : data.normalized[node][at] * data.weights[at];
    const highest = Math.max(1, ...data.totals);
    const rows = data.nodes.map((_, node) => node);
    // Raw scores are in each plugin's own unit, so its highest fills the bar; weighted ones can be compared.
    const most = (at) => rows.reduce((found, node) => Math.max(found, Math.abs(value(node, at))), 1);
    const scale = () => {
      const highs = data.plugins.map((_, at) => most(at));
      return unit === "raw" ? highs : highs.map(() => unit === "normalized" ? 100 : Math.max(...highs));
    };
    let fulls = scale();
    const counted = data.plugins.map((_, at) => at).filter((at) => rows.some((node) => data.raw[node][at] || data.normalized[node][at]));
    const zero = data.plugins.filter((_, at) => !counted.includes(at));
    const score = (node, at) => make("div", {role: "gridcell", class: "score", title: `${data.plugins[at]}: raw ${number(data.raw[node][at])}, normalized ${number(data.normalized[node][at])} × ${data.weights[at]}`},
      make("div", {class: "bar"}, make("span", {style: {width: `${100 * Math.abs(value(node, at)) / fulls[at]}%`, background: colour(data.plugins[at])}})),
      make("span", {class: "number"}, number(value(node, at))));
    const columns = [
      {label: "node", compare: by((node) => data.nodes[node]), cell: (node) => cell(data.nodes[node])},
      {label: "total", number: true, down: true, compare: by((node) => data.totals[node]), cell: (node) => cell(number(data.totals[node]), "number")},
      {label: "contributions", down: true, compare: by((node) => data.totals[node]), cell: (node) => make("div", {role: "gridcell"}, make("div", {class: "bar"},
        ...data.plugins.map((plugin, at) => {
          const part = data.normalized[node][at] * data.weights[at];
          return make("span", {title: `${plugin} ${data.normalized[node][at]} × ${data.weights[at]} = ${part}`,
            style: {width: `${Math.max(0, 100 * part / highest)}%`, background: colour(data.plugins[at])}});
        })))},
      ...counted.map((at) => ({label: `${data.plugins[at]} × ${data.weights[at]}`, number: true, wide: true, down: true,
        compare: by((node) => value(node, at)), cell: (node) => score(node, at)})),
    ];
    const table = grid({label: "scores", noun: "node", columns, rows, name: (node) => data.nodes[node], text: (node) => data.nodes[node],
      template: `${column_width(18, data.nodes, 40)} 5rem minmax(7.5rem, 13fr) ${counted.map(() => "minmax(7.5rem, 13fr)").join(" ")}`});
    const units = ["raw", "normalized", "weighted"].map((name) => make("button", {type: "button", "aria-pressed": name === unit, onclick: () => {
      unit = name;
      remember("scores.unit", unit === "weighted" ? "" : unit);
      fulls = scale();
      units.forEach((button) => button.setAttribute("aria-pressed", button.textContent === name));
      table.show(rows);
    }}, name));
    table.tools.prepend(...units);
    const legend = make("div", {class: "legend"}, ...counted.map((at) =>
      make("span", {}, make("span", {class: "key", style: {background: colour(data.plugins[at])}}), `${data.plugins[at]} × ${data.weights[at]}`)),
    zero.length ? make("span", {}, `0 for all of these nodes: ${zero.join(", ")}`) : "");
    const best = data.best > 1 ? `${plural(data.best, "node")} share the highest total: kube-scheduler picks one at random` : `${data.nodes[0]} has the highest total`;
    section("Scores", make("p", {}, best), lead(data), table.tools, legend, table.frame);
    table.open();
  },

  candidates(data) {
    section("Preemption", make("ul", {class: "cards"}, ...data.candidates.map((candidate) =>
      make("li", {class: candidate.best ? "card best" : "card"},
        make("b", {}, candidate.node), candidate.best ? make("span", {class: "badge"}, "best") : "",
        make("p", {class: "label"}, `${plural(candidate.victims.length, "victim")}, ${plural(candidate.violations, "budget violation")}`),
        make("ul", {}, ...candidate.victims.map((victim) => make("li", {class: "mono"}, victim)))))));
  },

  items(data) {
    // Equal facts are stored once, and empty values are left out.
    const empty = {facts: [], commands: [], event: "", fixes: [], no_fix: "", members: [], left_out: 0};
    const details = data.details.map((one) => ({...empty, ...one, facts: (one.facts || []).map((at) => data.facts[at])}));
    const all = data.rows.map((row, at) => ({row, detail: details[data.detail_of[at]], size: 1}));
    // Identical rows are one, which stands for them until every row is wanted.
    const groups = data.groups.map(([members, size, values, detail]) => size === 1 ? all[members[0]] : {
      row: [...data.rows[members[0]].slice(0, 2), `${data.rows[members[0]][2]} and ${number(size - 1)} more`, ...values],
      detail: {...details[detail], members: members.map((at) => data.rows[at][2]), left_out: size - members.length},
      size, members: members.map((at) => all[at])});
    const shared = (values) => {
      const [low, ...more] = [...new Set(values)].sort(by((value) => value));
      return typeof low === "number" && more.length ? `${number(low)} to ${number(more.at(-1))}` : values[0];
    };
    const merge = ({row, detail}, some) => some.length === 1 ? some[0] : {
      row: [...row.slice(0, 2), `${some[0].row[2]} and ${number(some.length - 1)} more`, ...row.slice(3).map((_, at) => shared(some.map((one) => one.row[3 + at])))],
      detail: {...detail, members: some.map((one) => one.row[2]), left_out: 0}, size: some.length, members: some};
    const each_key = `${data.title.toLowerCase()}.each`;
    const rows = groups.length && !address.has(each_key) ? groups : all;
    const [begin, end] = data.omitted;
    const short = (name) => name.slice(begin.length).replace(end, "");
    const marks = {good: ["✓", "c-pass"], bad: ["✗", "c-reject"], open: ["?", "c-none"], held: ["‖", "c-none"], plain: ["", ""]};
    const title = data.title.toLowerCase(), key = `${title}.kind`;
    // What few values of a column tell many rows apart can be chosen by a click.
    const facets = data.columns.flatMap((column, at) => {
      const counts = tally(data.rows.map((row) => row[3 + at]).filter(Boolean));
      const is_short = [...counts.keys()].every((text) => typeof text === "string" && text.length <= 24);
      const is_facet = is_short && !column.is_number && counts.size > 1 && counts.size <= 24 && data.rows.length >= 5 * counts.size;
      return is_facet ? [{at: 3 + at, label: column.label, key: `${title}.${column.label}`, counts}] : [];
    });
    const texts = (at) => at === 2 ? [...all, ...groups].map(({row}) => `✓ ${short(row[2])}`) : [data.columns[at - 3].label, ...data.rows.map((row) => row[at])];
    const places = [2, ...data.columns.map((_, at) => 3 + at)];
    // Long texts take a second line before the table scrolls; numbers and parts of a text stay on one. What can be chosen
    // leaves the table after that, then what all rows have: an opened row has it.
    const needed = places.reduce((sum, at) => sum + letters_of(texts(at)), 0);
    const longest_parts = places.map((at) => letters_of(texts(at).flatMap(parts_of)));
    const most_of = (at, cap) => at === 2 ? Math.max(cap, 18) : data.columns[at - 3].is_number ? WIDEST : Math.max(cap, longest_parts[at - 2]);
    const room = (Math.min(innerWidth, WIDEST_PAGE) - 75) / LETTER - (groups.length ? 7 : 0);
    const fits = (cap) => places.reduce((sum, at) => sum + letters_of(texts(at), most_of(at, cap)), 0) <= room;
    let cap = CAPS.find(fits) || CAPS.at(-1);
    const shared_places = places.filter((at) => at > 2 && !data.columns[at - 3].is_number && new Set(data.rows.map((row) => row[at])).size === 1);
    const dispensable = new Set([...facets.map((facet) => facet.at).reverse(), ...shared_places.reverse()]);
    for (const at of PHONE ? [] : dispensable) if (!fits(cap)) places.splice(places.indexOf(at), 1);
    cap = CAPS.find(fits) || cap;
    const columns = [
      {label: data.noun, compare: by(({row}) => row[2]), cell: ({row}) => make("div", {role: "gridcell", title: row[2]},
        make("span", {class: `mark ${row[0]}`}, marks[row[0]][0]), short(row[2]))},
      ...(groups.length ? [{label: `${data.noun}s`, number: true, down: true, compare: by(({size}) => size), cell: ({size}) => cell(number(size), "number")}] : []),
      ...places.slice(1).map((at) => [at, data.columns[at - 3]]).map(([at, column]) => ({
        label: column.label, number: column.is_number, down: column.is_number, compare: by(({row}) => column.is_number ? quantity(row[at]) : row[at]),
        cell: ({row}) => cell(typeof row[at] === "number" ? number(row[at]) : row[at], column.is_number ? "number" : ""),
      })),
    ];
    const width = (at) => column_width(7, texts(at), most_of(at, cap));
    const chosen = (wanted, value) => !address.get(wanted) || address.get(wanted) === value;
    const table = grid({
      label: title, noun: data.noun, columns, rows, pick: tell, name: ({row}) => row[2],
      keep: ({row}) => chosen(key, data.kinds[row[1]]) && facets.every((facet) => chosen(facet.key, row[facet.at])),
      parts: (one) => one.members || [one], merge,
      template: [width(2), ...(groups.length ? ["4rem"] : []), ...places.slice(1).map(width)].join(" "), size: (one) => one.size,
      text: ({row, detail}) => [row[0], data.kinds[row[1]], ...row.slice(2), ...detail.facts.flat(), ...detail.members, ...detail.fixes.map((fix) => fix.title)].join(" "),
    });
    function values(row, facts) {
      const told = new Set([...facts.map(([label]) => label), ...(printing ? columns.map(({label}) => label) : [])]);
      return data.columns.map((column, at) => [column.label, row[3 + at]]).filter(([label, text]) => typeof text === "string" && text && !told.has(label));
    }
    // What a row has besides the facts of its group.
    const own = ({row, detail}, common) => [row[2], ...data.columns.map((column, at) => `${column.label} ${row[3 + at]}`),
      ...detail.facts.filter((fact) => !common.facts.includes(fact)).map((fact) => fact.join(" ")), ...detail.members].join(" · ");
    function tell({row, detail, members}) {
      const facts = (those) => make("dl", {}, ...those.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {class: "mono"}, ...to_copy(text, detail.commands))]));
      const leads = ([, text]) => detail.commands.some((one) => text.endsWith(one));
      return [make("h3", {}, row[2]), facts([...values(row, detail.facts), ...detail.facts].filter((fact) => !leads(fact))),
        ...fix_list(title, detail.fixes, detail.no_fix),
        ...(detail.event ? [make("p", {class: "label"}, "event"), make("p", {class: "mono"}, detail.event)] : []), facts(detail.facts.filter(leads)),
        ...(detail.members.length ? [
          make("p", {class: "label"}, plural(detail.members.length + detail.left_out, "entry").replace("entrys", "entries")),
          make("ul", {class: "mono"}, ...(printing && members ? members.map((one) => own(one, detail)) : detail.members.slice(0, printing ? undefined : STEP)).map((one) => make("li", {}, one))),
          left_out((printing ? 0 : Math.max(0, detail.members.length - STEP)) + detail.left_out, "entry")] : [])];
    }
    const kinds = chips("state", key, tally(data.rows.map((row) => data.kinds[row[1]]).filter(Boolean)), () => table.refresh());
    const more = facets.map((facet) => chips(facet.label, facet.key, facet.counts, () => table.refresh()));
    if (groups.length) table.tools.prepend(toggle(`every ${data.noun}`, each_key, (on) => table.show(on ? all : groups)));
    const is_wide = needed > WIDEST_BESIDE;
    section(data.title, kinds, ...more, table.tools, begin || end ? make("p", {class: "label omitted"}, `names without ${[begin, end].filter(Boolean).join(" and ")}`) : "", make("div", {class: is_wide ? "split stacked" : "split"}, table.frame, table.story), left_out(data.left_out, data.noun));
    table.open(rows[0]);
  },

  timeline(data) {
    const last = data.text_of.length - 1;
    const high = Math.max(1, ...data.pending, ...data.placed, ...data.evicted);
    const line = (values, kind) => shape("polyline", {class: kind, fill: "none",
      points: values.map((value, at) => `${(1000 * at) / Math.max(last, 1)},${150 - (145 * value) / high}`).join(" ")});
    const cursor = shape("line", {class: "cursor", y1: 0, y2: 150});
    const told = make("output", {class: "mono"}), every = make("ol", {class: "mono decisions"});
    const slider = make("input", {type: "range", min: 0, max: last, value: address.get("step") || last, "aria-label": "decision",
      oninput: () => { remember("step", slider.value); show(); }});
    function decision(at) {
      const [before, after] = data.texts[data.text_of[at]];
      return `${before}${data.pods[data.pod_of[at]]}${after} (pending ${number(data.pending[at])}, placed ${number(data.placed[at])}, evicted ${number(data.evicted[at])})`;
    }
    function show() {
      const at = Number(slider.value), x = (1000 * at) / Math.max(last, 1);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      told.textContent = printing ? "" : `${number(at + 1)}. ${decision(at)}`;
      every.replaceChildren(...(printing ? data.text_of.map((_, at) => make("li", {}, decision(at))) : []));
    }
    const plot = shape("svg", {viewBox: "0 0 1000 155", preserveAspectRatio: "none", role: "img", "aria-label": "pods pending, placed, and evicted by decision", class: "plot"},
      line(data.pending, "pending"), line(data.placed, "placed"), line(data.evicted, "evicted"), cursor);
    const legend = make("div", {class: "legend"}, ...["pending", "placed", "evicted"].map((kind) =>
      make("span", {}, make("span", {class: `key ${kind}`}), kind)));
    section("Decisions", ...(last ? [legend, plot, slider] : []), make("p", {}, told), every);
    redraws.push(show);
    show();
  },

  heatmap(data) {
    const kinds = {down: ["c-never", "■"], short: ["c-reject", "×"], blocked: ["c-reject", "="], undecided: ["c-error", "?"],
      restarted: ["c-held", "↻"], moved: ["c-pass", "·"]};
    const rows = data.rows.map((_, row) => row);
    const told = (row, at) => {
      const state = data.states[data.state[row][at]];
      return state ? `${state}: loses ${number(data.lost[row][at])} of ${number(data.replicas[row])}, ${number(data.after[row][at])} after it` : "loses no pod";
    };
    const columns = [
      {label: "workload", compare: by((row) => data.rows[row]), cell: (row) => cell(data.rows[row])},
      {label: "replicas", number: true, down: true, compare: by((row) => data.replicas[row]), cell: (row) => cell(number(data.replicas[row]), "number")},
      ...data.columns.map((column, at) => ({
        label: column, compare: by((row) => data.state[row][at] || data.states.length),
        cell: (row) => {
          const state = data.states[data.state[row][at]], [kind, mark] = kinds[state] || ["c-none", ""];
          const text = state ? `${mark} ${number(data.after[row][at])} of ${number(data.replicas[row])}` : "";
          return make("div", {role: "gridcell", class: `cell ${kind}`, title: `${column}: ${told(row, at)}`}, text);
        },
      })),
    ];
    const worst = (row) => data.states[Math.min(...data.state[row].filter(Boolean))] || "";
    const table = grid({label: "workloads", noun: "workload", columns, rows, name: (row) => data.rows[row],
      template: `${column_width(18, data.rows, 40)} 5rem repeat(${data.columns.length}, minmax(7rem, 12rem))`,
      keep: (row) => !address.get("workloads.state") || worst(row) === address.get("workloads.state"),
      text: (row) => `${data.rows[row]} ${data.columns.map((_, at) => data.states[data.state[row][at]]).join(" ")}`});
    const states = chips("worst", "workloads.state", tally(rows.map(worst).filter(Boolean)), () => table.refresh());
    const legend = make("div", {class: "legend"}, ...data.states.filter(Boolean).map((state) =>
      make("span", {}, make("span", {class: `key cell ${kinds[state][0]}`}, kinds[state][1]), state)));
    section("Workloads by failure", states, table.tools, legend, table.frame);
    table.open();
  },

  // Side by side for each resource; a bar is as long as its share of all nodes.
  histogram(data) {
    const plots = data.plots.map((plot) => {
      const high = Math.max(1, ...plot.counts.flat());
      const rows = plot.buckets.map((bucket, at) => make("div", {class: "histrow"}, make("span", {class: "label"}, bucket),
        make("span", {class: "histbars"}, ...plot.counts.map((counts, one) => make("span", {class: "histbar"},
          make("span", {class: data.series.length > 1 ? ["was", "now"][one] : "now", style: {width: `${(85 * counts[at]) / high}%`}}),
          make("span", {class: "number"}, counts[at] ? number(counts[at]) : ""))))));
      return make("figure", {}, make("figcaption", {}, plot.label), ...rows);
    });
    const legend = data.series.length < 2 ? "" : make("div", {class: "legend"}, ...data.series.map((name, at) =>
      make("span", {}, make("span", {class: `key ${["was", "now"][at]}`}), `nodes ${name}`)));
    section(data.title, legend, make("div", {class: "plots"}, ...plots));
  },

  // Pools on both sides, as high as they have pods; a click shows the pods of one pool alone.
  flow(data) {
    const HIGH = 320, GAP = 10, LEFT = 210, RIGHT = 790;
    const all = data.moves.reduce((sum, move) => sum + move[2], 0);
    const scale = (HIGH - GAP * data.pools.length) / all;
    const picture = make("div", {class: "flow"}), told = make("div", {});
    const totals = (side) => data.pools.map((_, pool) => data.moves.filter((move) => move[side] === pool).reduce((sum, move) => sum + move[2], 0));
    const sums = [totals(0), totals(1)];
    const shade = (pool) => COLOURS[pool % COLOURS.length];
    function paint() {
      const chosen = address.get("flow.pool") || "";
      const starts = sums.map((side) => side.reduce(([made, y], size) => [[...made, y], y + (size ? size * scale + GAP : 0)], [[], 0])[0]);
      const next = starts.map((side) => [...side]);
      const bands = [...data.moves].sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([from, to, pods]) => {
        const high = pods * scale, a = next[0][from], b = next[1][to];
        next[0][from] += high;
        next[1][to] += high;
        const middle = (LEFT + RIGHT) / 2;
        const on = !chosen || chosen === data.pools[from] || chosen === data.pools[to];
        return shape("path", {class: on ? "band" : "band off", fill: shade(from),
          d: `M${LEFT + 10} ${a}C${middle} ${a} ${middle} ${b} ${RIGHT - 10} ${b}V${b + high}C${middle} ${b + high} ${middle} ${a + high} ${LEFT + 10} ${a + high}Z`},
        shape("title", {}, `${plural(pods, "pod")}: ${data.pools[from]} → ${data.pools[to]}`));
      });
      const ends = sums.flatMap((side, at) => side.flatMap((size, pool) => !size ? [] : [
        shape("rect", {x: at ? RIGHT - 10 : LEFT, y: starts[at][pool], width: 10, height: Math.max(size * scale, 2), fill: shade(pool)}),
        shape("text", {x: at ? RIGHT + 8 : LEFT - 8, y: starts[at][pool] + Math.max((size * scale) / 2, 8) + 4, "text-anchor": at ? "start" : "end"},
          `${data.pools[pool]} · ${number(size)}`)]));
      const low = Math.max(HIGH, ...starts[0], ...starts[1]) + 20;
      picture.replaceChildren(shape("svg", {viewBox: `0 -4 1000 ${low}`, role: "img", "aria-label": `pods by pool: ${data.sides[0]} on the left, ${data.sides[1]} on the right`}, ...bands, ...ends));
      const shown = data.moves.filter(([from, to]) => !chosen || chosen === data.pools[from] || chosen === data.pools[to]);
      const head = ["pool", ...data.sides];
      told.replaceChildren(make("p", {class: "label"}, shown.slice(0, printing ? undefined : 6).map(([from, to, pods]) =>
        `${data.pools[from]} → ${data.pools[to]}: ${plural(pods, "pod")}`).join(" · ")),
      ...(data.in_use.length ? [make("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "nodes in use"}, make("table", {}, make("thead", {}, make("tr", {}, ...head.map((name) => make("th", {scope: "col"}, name)))),
        make("tbody", {}, ...data.pools.flatMap((pool, at) => data.in_use[at][0] || data.in_use[at][1]
          ? [make("tr", {}, make("td", {}, pool), ...data.in_use[at].map((text) => make("td", {}, text)))] : []))))] : []));
    }
    const sizes = new Map(data.pools.map((pool, at) => [pool, Math.max(sums[0][at], sums[1][at])]));
    const heads = make("div", {class: "flowhead"}, ...data.sides.map((side) => make("b", {}, side)));
    section(data.title, chips("pool", "flow.pool", sizes, paint), heads, picture, told);
    redraws.push(paint);
    paint();
  },

  table(data) {
    const label = data.title.toLowerCase(), at_first = Number(address.get(`${label}.sort`) || 0);
    let shown = data.rows, most = Number(address.get(`${label}.rows`)) || STEP, sorted = {column: Math.abs(at_first) - 1, up: at_first >= 0};
    const filter = make("input", {type: "search", placeholder: "filter", "aria-label": `filter ${data.title}`,
      oninput: () => { remember(`${label}.q`, filter.value); refresh(); }});
    filter.value = address.get(`${label}.q`) || "";
    const count = make("span", {class: "count", role: "status"});
    const more = make("button", {type: "button", onclick: () => { most += STEP; remember(`${label}.rows`, most); draw(); }}, "show more");
    const body = make("tbody");
    const heads = data.columns.map((column, at) => make("th", {scope: "col", class: column.is_number ? "number" : ""},
      make("button", {type: "button", onclick: () => sort(at)}, column.label || "name")));
    function sort(at) {
      if (!data.columns[at]) return;
      sorted = {column: at, up: sorted.column === at ? !sorted.up : !data.columns[at].is_number};
      remember(`${label}.sort`, (sorted.up ? 1 : -1) * (at + 1));
      refresh();
    }
    function refresh() {
      const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      shown = data.rows.filter((row) => { const text = row.join(" ").toLowerCase(); return wanted.every((word) => text.includes(word)); });
      if (sorted.column >= 0) {
        const is_number = data.columns[sorted.column].is_number, compare = by((row) => is_number ? quantity(row[sorted.column]) : row[sorted.column]);
        shown.sort((a, b) => (sorted.up ? compare(a, b) : compare(b, a)));
        heads.forEach((head, at) => head.setAttribute("aria-sort", at !== sorted.column ? "none" : sorted.up ? "ascending" : "descending"));
      }
      draw();
    }
    function draw() {
      count.textContent = shown.length === data.rows.length ? plural(data.rows.length, "row") : `${number(shown.length)} of ${plural(data.rows.length, "row")}`;
      more.hidden = shown.length <= most;
      body.replaceChildren(...shown.slice(0, printing ? shown.length : most).map((row) => make("tr", {}, ...row.map((value, at) =>
        make("td", {class: data.columns[at].is_number ? "number" : "", "data-label": PHONE && at ? data.columns[at].label : null, colspan: at + 1 === row.length && row.length < heads.length ? heads.length - at : null}, typeof value === "number" ? number(value) : value)))));
    }
    const tools = data.rows.length > 8 ? [make("div", {class: "tools"}, filter, count)] : [];
    const frame = make("div", {class: "wide", tabindex: "0", role: "region", "aria-label": data.title}, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
    section(data.title, ...tools, frame, more, left_out(data.left_out, "row"));
    redraws.push(draw);
    tables.push({frame, filter, sort, key: (event) => { frame.scrollTop += event.key === "j" ? 30 : -30; }});
    refresh();
  },

  usage(data) {
    const rows = data.nodes.map((_, node) => node);
    const changed = (node) => data.before[node].some((value, at) => value !== data.after[node][at]);
    const bar = (node, at) => {
      const old = data.before[node][at], now = data.after[node][at];
      const percent = (value) => value === null ? "–" : `${value}%`;
      return make("div", {role: "gridcell", class: "use", title: `${data.resources[at]}: ${data.told[node][at]}`},
        make("div", {class: "bar pair"},
          make("span", {class: "was", style: {width: `${Math.min(old ?? 0, 100)}%`}}),
          make("span", {class: "now", style: {width: `${Math.min(now ?? 0, 100)}%`}})),
        make("span", {}, old === now ? percent(now) : `${percent(old)} → ${percent(now)}`));
    };
    const some = rows.filter(changed).length ? rows.filter(changed) : rows;
    const table = grid({label: "usage", noun: "node", rows: address.has("usage.each") ? rows : some, name: (node) => data.nodes[node], text: (node) => data.nodes[node],
      template: `${column_width(18, data.nodes, 40)} repeat(${data.resources.length}, minmax(9.5rem, 16fr))`,
      columns: [
        {label: "node", compare: by((node) => data.nodes[node]), cell: (node) => cell(data.nodes[node])},
        ...data.resources.map((resource, at) => ({label: resource, compare: by((node) => data.after[node][at] ?? -1), down: true, cell: (node) => bar(node, at)})),
      ]});
    const each = toggle("every node", "usage.each", (on) => table.show(on ? rows : some));
    table.tools.prepend(each);
    redraws.push(() => table.show(printing || address.has("usage.each") ? rows : some));
    const legend = make("div", {class: "legend"}, make("span", {}, make("span", {class: "key was"}), "before"), make("span", {}, make("span", {class: "key now"}), "after"));
    section("Nodes before and after", table.tools, legend, table.frame);
    table.open();
  },
};

// Why the winner wins: what each plugin gives the first node over the best other one; plugins without a difference are left out.
function lead(data) {
  const second = data.best < data.nodes.length ? data.best : data.nodes.length > 1 ? 1 : -1;
  if (second < 0) return "";
  const weighted = (node, at) => data.normalized[node][at] * data.weights[at];
  const parts = data.plugins.map((plugin, at) => [plugin, weighted(0, at) - weighted(second, at), at]).filter(([, value]) => value);
  if (!parts.length) return "";
  const high = Math.max(...parts.map(([, value]) => Math.abs(value)));
  return make("div", {class: "lead"}, make("p", {class: "label"}, `${data.nodes[0]} over ${data.nodes[second]}: ${plural(data.totals[0] - data.totals[second], "point")}`),
    ...parts.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).map(([plugin, value, at]) => make("div", {class: "leadrow"},
      make("span", {}, plugin), make("span", {class: "bar"}, make("span", {style: {width: `${(100 * Math.abs(value)) / high}%`, background: colour(data.plugins[at])}})),
      make("span", {class: "number"}, `${value > 0 ? "+" : ""}${number(value)}`))));
}

function shape(tag, properties, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Fixes are numbered as on the terminal; each copies its commands or its patch.
function fix_list(place, fixes, none) {
  const made = fixes.map((fix, at) => make("li", {}, fix.title, fix.seen ? make("span", {class: "label"}, ` · ${fix.seen} `) : " ",
    ...(fix.copy ? [copy_button(fix.copy), fold(`${place}.fix${at + 1}`, /^kube/m.test(fix.copy) ? "commands" : "changes", make("pre", {tabindex: "0"}, fix.copy))] : [])));
  return [...(made.length ? [make("ol", {class: "fixes"}, ...made)] : []), ...(none ? [make("p", {}, make("b", {}, "no fix "), none)] : [])];
}

function copy_button(text) {
  const made = make("button", {type: "button", class: "chip", onclick: async () => {
    made.textContent = (await copied(text)) ? "copied" : "not copied";
    setTimeout(() => { made.textContent = "copy"; }, 1500);
  }}, "copy");
  return made;
}

// A text, and a button if it ends with one of these commands.
function to_copy(text, commands) {
  const command = commands.find((one) => text.endsWith(one));
  return command ? [text, " ", copy_button(command)] : [text];
}

function head(data) {
  const line = (label, ...content) => make("div", {class: "fact"}, make("b", {}, label), make("div", {}, ...content));
  const made = data.details.map((detail) => make("p", {}, detail));
  if (data.because.length) made.push(line("because", make("ul", {}, ...data.because.map((cause) => make("li", {}, cause)))));
  const facts = data.facts.map(([label, text]) => line(label, ...to_copy(text, data.commands)));
  const fixes = data.fixes.length || data.no_fix ? [line("fix", ...fix_list("head", data.fixes, data.no_fix))] : [];
  made.push(...(data.because.length ? [...fixes, ...facts] : [...facts, ...fixes]));
  if (data.event) made.push(line("event", make("span", {class: "mono"}, data.event)));
  for (const one of data.deciders) {
    made.push(line(one.name, make("p", {}, one.sentence),
      ...(one.rows.length ? [make("ul", {}, ...one.rows.map(([text, facts]) => make("li", {}, text,
        ...facts.map(([label, told]) => make("div", {class: "label"}, `${label} ${told}`)))))] : []),
      ...fix_list(one.name, one.fixes, ""), ...(one.event ? [make("p", {class: "mono"}, `event ${one.event}`)] : []),
      ...(one.recorded ? [make("p", {class: "label"}, one.recorded)] : []), make("p", {class: "label"}, one.basis.join(" · "))));
  }
  for (const note of data.notes) made.push(line("note", note));
  document.getElementById("head").append(...made);
}

// Colours that people with any colour vision tell apart (Okabe and Ito), then the same darker.
const COLOURS = ["#0072b2", "#b07600", "#007a5a", "#b4558c", "#8a5cc0", "#c14d00", "#7a7000", "#1e8c99", "#6f6f6f", "#1b6ca8", "#96640a", "#2a7d63"];
const PLUGINS = ["NodeResourcesFit", "NodeAffinity", "TaintToleration", "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation",
  "ImageLocality", "VolumeBinding", "NodeUnschedulable", "NodePorts", "DynamicResources", "VolumeZone"];
// A plugin has the same color on every page; others have one by the letters of their name.
function colour(plugin) {
  const known = PLUGINS.indexOf(plugin);
  return COLOURS[(known < 0 ? [...plugin].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) : known) % COLOURS.length];
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", {class: "mono"});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

head(page.head);
for (const one of page.sections) DRAW[one.kind](one);
const screen_text = fold("text", "As text", document.querySelector("#screen pre"));
document.getElementById("screen").replaceWith(screen_text);
screen_text.id = "screen";
