// Where things stand. dagre lays out the children of one open group at a time; groups with the same contents are laid out once.

const SPACE = { head: 24, side: 14, bottom: 14 };
const WIDEST = 1500;
const layouts = new Map();
const widths = new Map();

function textWidth(text, size) {
  const key = `${size}${text}`;
  if (!widths.has(key)) {
    textWidth.context = textWidth.context || document.createElement("canvas").getContext("2d");
    textWidth.context.font = `${size}px system-ui, sans-serif`;
    widths.set(key, textWidth.context.measureText(text).width);
  }
  return widths.get(key);
}

const groupTitle = (one) => (one.ofSeveral ? `${one.name} #${one.call}` : one.name);

function shorten(text, length) { return text.length > length ? `${text.slice(0, length - 1)}…` : text; }

function labelsOf(one) {
  if (!one.labels) {
    if (one.children) {
      one.labels = [shorten(groupTitle(one), 34), one.isPart ? counted(one.count, "operation") : `${shorten(one.kind, 26)} · ${one.count}`];
    } else {
      const box = one.operation;
      const first = box.values[0];
      const node = box.node.replace(/Backward0?$/, "");
      const isSaid = node.toLowerCase() === one.name.replaceAll("_", "").toLowerCase();
      const facts = first ? `${shapeText(first.shape)}${first.dtype === "float32" ? "" : ` ${first.dtype}`}` : isSaid ? "" : node;
      one.labels = [shorten(one.name, 26), box.kind === "optimizer" ? counted(box.stepped, "parameter") : shorten(facts, 28)];
    }
  }
  return one.labels;
}

// Give a node its size; an open group is laid out first.
function measure(one) {
  const [title, facts] = labelsOf(one);
  if (!one.children) {
    one.width = Math.max(70, 22 + Math.max(textWidth(title, 12.5), textWidth(facts, 10.5)));
    one.height = 38;
    return;
  }
  if (!one.open) {
    one.width = Math.max(104, 34 + Math.max(textWidth(title, 13), textWidth(facts, 10.5)));
    one.height = 50;
    return;
  }
  one.children.forEach(measure);
  arrange(one);
}

function arrange(one) {
  const { children } = one;
  const numbers = new Map(children.map((child, at) => [child, at]));
  const edges = [...one.edges.values()];
  const key = [one.across ? "across" : "down", children.map((child) => `${Math.round(child.width)},${Math.round(child.height)}`).join(" "),
    edges.map((edge) => `${numbers.get(edge.from)}-${numbers.get(edge.to)}`).join(" ")].join("|");
  if (!layouts.has(key)) layouts.set(key, one.across ? inColumns(children) : byDagre(children, edges, numbers));
  const made = layouts.get(key);
  one.inside = made;
  const isRoot = !one.parent;
  const title = isRoot ? 0 : 40 + textWidth(labelsOf(one)[0], 12);
  one.width = Math.max(made.width + 2 * SPACE.side, title);
  one.height = made.height + SPACE.head + SPACE.bottom;
  const shift = (one.width - made.width) / 2;
  children.forEach((child, at) => { child.at = [made.places[at][0] + shift, made.places[at][1] + SPACE.head]; });
  edges.forEach((edge, at) => { edge.points = made.routes[at] ? made.routes[at].map(([x, y]) => [x + shift, y + SPACE.head]) : null; });
}

function byDagre(children, edges, numbers) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 16, ranksep: 26, edgesep: 8, ranker: "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  children.forEach((child, at) => graph.setNode(String(at), { width: child.width, height: child.height }));
  for (const edge of edges) graph.setEdge(String(numbers.get(edge.from)), String(numbers.get(edge.to)));
  dagre.layout(graph);
  const places = children.map((child, at) => {
    const { x, y } = graph.node(String(at));
    return [x - child.width / 2, y - child.height / 2];
  });
  const routes = edges.map((edge) => graph.edge(String(numbers.get(edge.from)), String(numbers.get(edge.to))).points.map(({ x, y }) => [x, y]));
  const { width, height } = graph.graph();
  if (width > WIDEST) return inRows(children, places);
  return { places, routes, width: Math.max(width, 1), height: Math.max(height, 1) };
}

// Break ranks that are too wide into several rows; lines then go straight.
function inRows(children, places) {
  const ranks = new Map();
  children.forEach((child, at) => {
    const middle = Math.round(places[at][1] + child.height / 2);
    if (!ranks.has(middle)) ranks.set(middle, []);
    ranks.get(middle).push(at);
  });
  const rows = [];
  for (const [, rank] of [...ranks].sort(([a], [b]) => a - b)) {
    rank.sort((a, b) => places[a][0] - places[b][0]);
    const total = rank.reduce((sum, at) => sum + children[at].width + 16, 0);
    const most = total / Math.ceil(total / WIDEST) + 40;
    let row = [];
    let wide = 0;
    for (const at of rank) {
      if (row.length && wide + children[at].width > most) {
        rows.push(row);
        [row, wide] = [[], 0];
      }
      row.push(at);
      wide += children[at].width + 16;
    }
    rows.push(row);
  }
  const wide = (row) => row.reduce((sum, at) => sum + children[at].width + 16, -16);
  const width = Math.max(...rows.map(wide));
  const found = new Array(children.length);
  let y = 0;
  for (const row of rows) {
    let x = (width - wide(row)) / 2;
    const tall = Math.max(...row.map((at) => children[at].height));
    for (const at of row) {
      found[at] = [x, y + (tall - children[at].height) / 2];
      x += children[at].width + 16;
    }
    y += tall + 26;
  }
  return { places: found, routes: [], width, height: y - 26 };
}

// Stretches of a long execution stand side by side, as columns of a text do.
function inColumns(children) {
  let x = 0;
  const places = children.map((child) => {
    const place = [x, 0];
    x += child.width + 30;
    return place;
  });
  return { places, routes: [], width: x - 30, height: Math.max(...children.map((child) => child.height)) };
}

// Lay the whole tree out; returns what is visible, and the lines between.
function layOut(tree) {
  tree.root.open = true;
  measure(tree.root);
  const shown = [];
  const groups = [];
  const routes = [];
  const place = (one, x, y) => {
    one.x = x;
    one.y = y;
    if (!one.children || !one.open) {
      shown.push(one);
      return;
    }
    if (one.parent) groups.push(one);
    for (const child of one.children) place(child, x + child.at[0], y + child.at[1]);
  };
  place(tree.root, 0, 0);
  for (const one of [tree.root, ...groups]) {
    for (const edge of one.edges.values()) {
      const seen = new Set();
      for (const [from, to] of edge.pairs) {
        const [start, end] = [visible(from), visible(to)];
        const key = `${start.id}\n${end.id}`;
        if (seen.has(key)) continue;
        seen.add(key);
        routes.push({ from: start, to: end, points: route(one, edge, start, end), across: Boolean(one.across) });
      }
    }
  }
  return { shown, groups, routes, width: tree.root.width, height: tree.root.height };
}

// What stands for a node: itself, or the outermost closed group around it.
function visible(one) {
  let found = one;
  for (let at = one.parent; at; at = at.parent) if (!at.open) found = at;
  return found;
}

function route(group, edge, start, end) {
  if (group.across) return [[start.x + start.width, start.y + start.height / 2], [end.x, end.y + end.height / 2]];
  const points = [[start.x + start.width / 2, start.y + start.height]];
  if (edge.points) {
    const bends = edge.points.map(([x, y]) => [x + group.x, y + group.y]);
    points.push(...bends.slice(start === edge.from ? 1 : 0, end === edge.to ? -1 : undefined));
  }
  points.push([end.x + end.width / 2, end.y]);
  return points;
}

// Open groups, the outermost first, as long as no more boxes than `most` are visible: first modules, then what lines have called, then
// stretches of the execution, all of a group or none: for these twice as many, as they would hide everything.
function openTo(tree, most) {
  tree.root.open = true;
  let count = tree.root.children.length;
  const openTogether = (groups) => {
    const more = groups.reduce((sum, one) => sum + one.children.length - 1, 0);
    if (count + more > (groups.length > 1 ? 2 * most : most)) return;
    groups.forEach((one) => { one.open = true; });
    count += more;
  };
  const isGroup = (one) => one.children && !one.isPart;
  for (const mayOpen of [(one) => isGroup(one) && !one.isStretch, isGroup, (one) => isGroup(one) || one.isPart]) {
    let level = [tree.root];
    while (level.length) {
      const parts = level.map((one) => one.children.filter((child) => child.isPart && !child.open && mayOpen(child)));
      const others = level.flatMap((one) => one.children.filter((child) => isGroup(child) && !child.open && mayOpen(child)));
      [...parts, ...others.map((one) => [one])].sort((a, b) => sizeOf(a) - sizeOf(b)).forEach(openTogether);
      level = level.flatMap((one) => one.children.filter((child) => child.children && child.open));
    }
  }
}

const sizeOf = (groups) => groups.reduce((sum, one) => sum + one.children.length, 0);
