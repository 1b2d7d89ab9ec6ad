// A table of any size: only the cells in view are asked for and drawn. Keys: arrows, Page Up/Down, Home, End; Enter opens
// a cell, + and - fold its line, Shift and arrows choose several, Ctrl-C copies them for a spreadsheet.
// A list whose columns do not fit is drawn as cards: the name of a cell, and below it what its columns say.
const ROW = 28, HEAD = 30, TALLEST = 8e6, MARGIN = 8, WONDER_MS = 250, FIELD = 300, FIELD_ROW = 22, LEAST_NAME = 170;

// A number without what stands between its thousands, as spreadsheets read it; any other text as it is.
const plain = (text, between) => (/^[-−]?\d[\d,.\u202f]*$/.test(text) ? text.replaceAll(between, "") : text);

export default {
  template: `<div class="ts-grid-box">
    <div ref="pane" class="ts-grid" tabindex="0" role="grid" :aria-label="label" :aria-rowcount="rows + 1"
         :aria-colcount="columns + 1" @scroll.passive="scrolled" @keydown="pressed" @mousemove="pointed" @mouseleave="left"
         @pointerdown="press" @click="clicked" @copy="copied"></div>
    <div ref="bubble" class="ts-bubble" role="tooltip" hidden></div>
    <div ref="told" class="ts-told" aria-live="polite"></div>
  </div>`,
  props: { label: String, version: Number, group: String, side: Number, words: Object, between: String },
  data: () => ({ rows: 0, columns: 0, at: [0, 0], from: null }),
  mounted() {
    this.pane = this.$refs.pane;
    this.sizer = document.createElement("div");
    this.sizer.className = "ts-sizer";
    this.heads = document.createElement("div");
    this.heads.className = "ts-heads";
    this.body = document.createElement("div");
    this.body.className = "ts-body";
    this.pane.append(this.heads, this.sizer);
    this.sizer.append(this.body);
    this.watcher = new ResizeObserver(() => this.look());
    this.watcher.observe(this.pane);
    this.onGroup = (e) => this.follow(e.detail);
    window.addEventListener("ts-grid-scroll", this.onGroup);
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, this.release);
    this.look(true);
  },
  beforeUnmount() {
    this.watcher.disconnect();
    window.removeEventListener("ts-grid-scroll", this.onGroup);
    for (const end of ["pointerup", "pointercancel"]) window.removeEventListener(end, this.release);
  },
  watch: {
    version() { this.look(true); },
  },
  methods: {
    cell() { return this.wide || 72; },
    // How high a line is: a card has its name, and lines with as many columns beside one another as there is room for.
    row() { return this.cards ? ROW + FIELD_ROW * Math.ceil(this.columns / Math.max(Math.floor(this.pane.clientWidth / FIELD), 1)) + 6 : ROW; },
    // How wide a column is, and where it begins: those of a list have widths of their own, those of a table are alike.
    width(j) { return this.widths ? this.widths[j] : this.cell(); },
    start(j) { return this.widths ? this.widths.slice(0, j).reduce((sum, each) => sum + each, 0) : j * this.cell(); },
    // The names at the side: as wide as they are, but never more than leaves room for a column beside them.
    aside() {
      if (this.widths) {
        const room = this.pane.clientWidth - this.start(this.columns);
        return Math.max(Math.min(this.named, room, this.side), LEAST_NAME);
      }
      const most = Math.max(110, Math.floor(this.pane.clientWidth * (0.42)));
      return Math.min(this.named || this.side || 250, this.side || 250, most);
    },
    // How wide a text is drawn.
    across(text, bold) {
      const pen = (this.pen ||= document.createElement("canvas").getContext("2d"));
      pen.font = `${bold ? 600 : 400} ${this.font}`;
      return pen.measureText(text).width;
    },
    tall() { return Math.min(this.rows * this.row(), TALLEST); },
    // Where the view would be were the table drawn at its full height: browsers do not scroll further than some 10^7 px.
    top() {
      const full = this.rows * this.row(), room = this.pane.clientHeight - HEAD;
      if (full <= TALLEST) return this.pane.scrollTop;
      return this.pane.scrollTop * (full - room) / Math.max(this.tall() - room, 1);
    },
    span() {
      const high = this.pane.clientHeight - HEAD, wide = this.pane.clientWidth - this.aside(), w = this.cell();
      if (!this.rows) return [0, Math.ceil(high / this.row()) + MARGIN, 0, Math.ceil(wide / w) + 2];
      const first = Math.max(Math.floor(this.top() / this.row()) - MARGIN, 0);
      const last = Math.min(Math.ceil((this.top() + high) / this.row()) + MARGIN, this.rows);
      if (this.widths) return [first, last, 0, this.columns];
      const left = Math.max(Math.floor(this.pane.scrollLeft / w) - 2, 0);
      const right = Math.min(Math.ceil((this.pane.scrollLeft + wide) / w) + 2, this.columns);
      return [first, last, left, Math.max(right, Math.min(left + 1, this.columns))];
    },
    look(again) {
      if (!this.pane || !this.pane.clientHeight) return;
      const cards = !!this.widths && LEAST_NAME + this.start(this.columns) > this.pane.clientWidth;
      if (cards !== !!this.cards) { this.cards = cards; this.pane.classList.toggle("ts-carded", cards); this.draw(); }
      this.pane.style.height = HEAD + Math.max(this.rows, 3) * this.row() + 18 + "px";
      this.sizer.style.height = this.tall() + "px";
      this.sizer.style.width = this.cards ? "100%" : this.aside() + this.start(this.columns) + "px";
      this.heads.style.width = this.sizer.style.width;
      const want = this.span(), key = want.join() + "/" + this.version;
      if (key !== this.asked || again) { this.asked = key; this.$emit("window", want); }
      this.place();
    },
    scrolled() {
      this.look();
      this.$refs.bubble.hidden = true;
      if (this.group && !this.following)
        window.dispatchEvent(new CustomEvent("ts-grid-scroll",
          { detail: { group: this.group, from: this.$el, top: this.pane.scrollTop, left: this.pane.scrollLeft } }));
      this.following = false;
    },
    follow(d) {
      if (d.group !== this.group || d.from === this.$el) return;
      if (this.pane.scrollTop === d.top && this.pane.scrollLeft === d.left) return;
      this.following = true;
      this.pane.scrollTop = d.top;
      this.pane.scrollLeft = d.left;
    },
    // Nothing is drawn anew under a button that is being pressed: the browser would lose the click.
    press() { this.pressing = true; },
    release() {
      if (!this.pressing) return;
      setTimeout(() => {
        this.pressing = false;
        const part = this.late;
        this.late = null;
        if (part) this.fill(part);
      });
    },
    // Python answers a window with its part of the table: {first, left, heads, rows: [{head, depth, fold, key, cells}]}
    fill(part) {
      if (this.pressing) { this.late = part; return; }
      const [rows, columns] = part.count, other = rows !== this.rows || columns !== this.columns;
      const look = getComputedStyle(this.pane);
      this.font = `${look.fontSize} ${look.fontFamily}`;
      this.folds ||= part.rows.some((row) => row.fold || row.depth);
      let longest = "", wide = 60, named = this.across(part.corner || "", true) + 28;
      const headed = part.heads.map((head) => Math.max(60, this.across(head.text, true) + (head.fold ? 42 : head.sort ? 24 : 18)));
      for (const head of headed) wide = Math.max(wide, head);
      for (const row of part.rows) {
        named = Math.max(named, this.across(row.text, row.depth === 0) + 16 * row.depth + (this.folds ? 42 : 18));
        for (const cell of row.cells) if (cell[0].length > longest.length) longest = cell[0];
      }
      const before = (this.widths || []).join();
      const listed = part.left === 0 && part.heads.length === columns && part.heads.some((head) => head.sort);
      this.widths = listed ? headed.map((head, j) => this.fitting(part, head, j)) : null;
      wide = Math.min(Math.ceil(Math.max(wide, this.across(longest) + 30)), 200);
      const wider = wide > (this.wide || 0) || named > (this.named || 0) || before !== (this.widths || []).join();
      this.wide = Math.max(wide, this.wide || 0);
      this.named = Math.max(Math.ceil(named), this.named || 0);
      this.held = part;
      this.rows = rows;
      this.columns = columns;
      this.at = [Math.min(this.at[0], Math.max(rows - 1, 0)), Math.min(this.at[1], Math.max(columns - 1, 0))];
      this.draw();
      if (other || wider) this.look();
    },
    // As wide as what stands in a column of a list, and no narrower than it was: nothing jumps while one scrolls.
    fitting(part, head, j) {
      let longest = "";
      let signed = false;
      for (const row of part.rows) {
        if (row.cells[j][0].length > longest.length) longest = row.cells[j][0];
        signed ||= !!row.cells[j][2];
      }
      const was = (this.widths && this.widths.length === part.heads.length && this.widths[j]) || 0;
      return Math.max(was, Math.min(Math.ceil(Math.max(head, this.across(longest) + (signed ? 32 : 18))), 260));
    },
    draw() {
      const part = this.held;
      if (!part) return;
      const corner = this.made("div", "ts-corner", "", { role: "columnheader" }), heads = [corner];
      if (part.order !== undefined) corner.append(this.sorter(part.corner + part.order, "", part.sorts)); // as the table has it
      else corner.append(document.createTextNode(part.corner || ""));
      heads[0].style.width = this.aside() + "px";
      heads.push(this.gap(this.start(part.left)));
      part.heads.forEach((head, j) => {
        const box = this.made("div", "ts-head", "", { role: "columnheader", title: head.title, "aria-colindex": part.left + j + 2 });
        if (!this.cards) box.style.width = this.width(part.left + j) + "px";
        if (head.fold) box.append(this.fold(head, "column"));
        if (head.sort) box.append(this.sorter(head.text, head.sort, head.title));
        else box.append(document.createTextNode(head.text));
        heads.push(box);
      });
      this.heads.setAttribute("role", "row"); // not before there is a head in it
      this.heads.replaceChildren(...heads);
      this.body.replaceChildren(...part.rows.map((row, i) => this.line(row, part.first + i, part.left)));
      this.place();
      this.mark();
    },
    sorter(text, key, title) {
      const button = this.made("button", "ts-sort", text, { type: "button", title });
      button.tsSort = key;
      return button;
    },
    line(row, i, left) {
      const line = this.made("div", "ts-line", "", { role: "row", "aria-rowindex": i + 2 });
      if (this.cards) line.style.height = this.row() + "px";
      const side = this.made("div", "ts-side" + (row.depth === 0 ? " ts-top" : ""), "", { role: "rowheader", title: row.title });
      if (!this.cards) side.style.width = this.aside() + "px";
      side.style.paddingLeft = 8 + row.depth * 16 + "px";
      if (row.fold) side.append(this.fold(row, "row"));
      else if (this.folds) side.append(this.made("span", "ts-nofold", ""));
      side.append(document.createTextNode(row.text));
      line.append(side, this.gap(this.start(left)));
      row.cells.forEach((cell, j) => {
        const box = this.made("div", "ts-cell " + cell[1], "", { role: "gridcell", "aria-colindex": left + j + 2 });
        if (!this.cards) box.style.width = this.width(left + j) + "px";
        box.dataset.head = this.held.heads[j].text.replace(this.held.heads[j].arrow || "", "");
        box.dataset.at = i + "," + (left + j);
        box.append(document.createTextNode(cell[0]));
        if (cell[2]) box.append(this.made("span", "ts-sign", cell[2], { "aria-hidden": "true" }));
        box.tsHover = cell[3];
        box.tsCell = cell[4];
        box.tsPick = cell.length > 5 ? cell[5] : cell[4];
        line.append(box);
      });
      return line;
    },
    fold(one, axis) {
      const open = one.fold === "open";
      const button = this.made("button", "ts-fold", open ? "▾" : "▸",
        { type: "button", tabindex: "-1", "aria-expanded": String(open), "aria-label": this.words[open ? "fold" : "unfold"].replace("{line}", () => one.text) });
      button.tsKey = [axis, one.key];
      return button;
    },
    gap(width) { const g = this.made("div", "ts-gap", ""); g.style.width = width + "px"; return g; },
    made(tag, name, text, attributes) {
      const node = document.createElement(tag);
      node.className = name;
      if (text) node.textContent = text;
      for (const key in attributes || {}) if (attributes[key] != null) node.setAttribute(key, attributes[key]);
      return node;
    },
    place() {
      if (!this.held) return;
      this.body.style.transform = `translateY(${this.pane.scrollTop + this.held.first * this.row() - this.top()}px)`;
    },
    // The corners of what is chosen: from where Shift was pressed to the cell in hand.
    chosen() {
      const [r, c] = this.at, [r0, c0] = this.from || this.at;
      return [Math.min(r, r0), Math.max(r, r0), Math.min(c, c0), Math.max(c, c0)];
    },
    mark() {
      this.body.querySelectorAll(".ts-at, .ts-in").forEach((n) => n.classList.remove("ts-at", "ts-in"));
      const [top, bottom, left, right] = this.chosen();
      if (this.from) this.body.querySelectorAll(".ts-cell").forEach((n) => {
        const [r, c] = n.dataset.at.split(",").map(Number);
        n.classList.toggle("ts-in", r >= top && r <= bottom && c >= left && c <= right);
      });
      const node = this.body.querySelector(`[data-at="${this.at.join()}"]`);
      if (node) node.classList.add("ts-at");
      return node;
    },
    clicked(e) {
      const fold = e.target.closest(".ts-fold");
      if (fold) { this.$emit("fold", fold.tsKey); return; }
      const sort = e.target.closest(".ts-sort");
      if (sort) { this.$emit("sort", sort.tsSort); return; }
      const cell = e.target.closest(".ts-cell");
      if (!cell) return;
      this.from = e.shiftKey ? this.from || this.at : null;
      this.at = cell.dataset.at.split(",").map(Number);
      this.$refs.bubble.hidden = true;
      this.tell();
      this.pick();
    },
    // Whether lines or columns are chosen that are not drawn now: only Python knows what stands there.
    beyond() {
      const [top, bottom, left, right] = this.chosen(), part = this.held;
      return top < part.first || bottom >= part.first + part.rows.length || left < part.left || right >= part.left + part.heads.length;
    },
    // Open the cell in hand, or all that are chosen.
    pick() {
      const at = this.body.querySelector(".ts-at");
      if (at) window.tsAt = at.getBoundingClientRect().top; // the panel takes room: the cell shall stay under the pointer
      const [top, bottom, left, right] = this.chosen(), cells = [];
      if (this.from && this.held && this.beyond()) { this.$emit("choose", [top, bottom + 1, left, right + 1]); return; }
      this.body.querySelectorAll(".ts-cell").forEach((n) => {
        const [r, c] = n.dataset.at.split(",").map(Number);
        if (r >= top && r <= bottom && c >= left && c <= right && n.tsPick >= 0) cells.push(n.tsPick);
      });
      if (cells.length) this.$emit("pick", [...new Set(cells)]);
    },
    // What is chosen, as lines with tabs.
    text() {
      const part = this.held, [top, bottom, left, right] = this.chosen();
      const across = part.heads.map((h, j) => [h.arrow ? h.text.slice(0, -h.arrow.length) : h.text, part.left + j]).filter(([, j]) => j >= left && j <= right);
      const lines = [[part.corner || "", ...across.map(([text]) => text)].join("\t")];
      part.rows.forEach((row, i) => {
        if (part.first + i < top || part.first + i > bottom) return;
        lines.push([row.text, ...across.map(([, j]) => plain(row.cells[j - part.left][0], this.between))].join("\t"));
      });
      return lines.join("\n");
    },
    copied(e) {
      if (window.getSelection().toString() || !this.held) return;
      e.preventDefault();
      const [top, bottom, left, right] = this.chosen();
      if (this.beyond()) { this.$emit("copy", [top, bottom + 1, left, right + 1]); return; }
      e.clipboardData.setData("text/plain", this.text());
      this.say(this.words.copied);
    },
    say(words) { this.$refs.told.textContent = words; },
    // Python says where a cell is that was looked for.
    go(row, column) { this.at = [row, column]; this.from = null; this.reveal(); this.look(true); this.tell(); },
    pressed(e) {
      const page = Math.max(Math.floor((this.pane.clientHeight - HEAD) / this.row()) - 1, 1), [r, c] = this.at;
      const moves = {
        ArrowDown: [r + 1, c], ArrowUp: [r - 1, c], ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1], PageDown: [r + page, c],
        PageUp: [r - page, c], Home: e.ctrlKey ? [0, 0] : [r, 0], End: e.ctrlKey ? [this.rows - 1, this.columns - 1] : [r, this.columns - 1],
      };
      if (e.key === "Enter" || e.key === " ") this.pick();
      else if (e.key === "Escape") this.$emit("pick", []);
      else if ("+-".includes(e.key)) {
        const row = this.held && this.held.rows[r - this.held.first];
        if (row && row.fold && (row.fold === "open") === (e.key === "-")) this.$emit("fold", ["row", row.key]);
      } else if (moves[e.key]) {
        const [row, column] = moves[e.key];
        this.from = e.shiftKey ? this.from || this.at : null;
        this.at = [Math.min(Math.max(row, 0), this.rows - 1), Math.min(Math.max(column, 0), this.columns - 1)];
        this.reveal();
        this.tell();
      } else return;
      e.preventDefault();
    },
    reveal() {
      const [r, c] = this.at, room = this.pane.clientHeight - HEAD;
      const full = this.rows * this.row(), scale = full <= TALLEST ? 1 : Math.max(this.tall() - room, 1) / (full - room);
      if (r * this.row() < this.top()) this.pane.scrollTop = Math.floor(r * this.row() * scale);
      else if ((r + 1) * this.row() > this.top() + room) this.pane.scrollTop = Math.ceil(((r + 1) * this.row() - room) * scale);
      if (this.cards) return;
      if (this.start(c) < this.pane.scrollLeft) this.pane.scrollLeft = this.start(c);
      else if (this.start(c + 1) > this.pane.scrollLeft + this.pane.clientWidth - this.aside())
        this.pane.scrollLeft = this.start(c + 1) - this.pane.clientWidth + this.aside();
    },
    tell() {
      const node = this.mark();
      this.$refs.told.textContent = node && node.tsHover ? node.tsHover.replaceAll("\n", ". ") : "";
      clearTimeout(this.wondering); // who only passes by asks nothing
      if (node && node.tsCell >= 0) this.wondering = setTimeout(() => this.$emit("derive", node.tsCell), WONDER_MS);
    },
    // Python tells what it has found out about a cell.
    known(number, text) {
      if (!text || !this.held) return;
      for (const row of this.held.rows) for (const cell of row.cells) if (cell[4] === number) { cell[3] = text; cell[4] = -1; }
      for (const node of this.body.querySelectorAll(".ts-cell")) {
        if (node.tsCell !== number) continue;
        if (this.$refs.bubble.textContent === node.tsHover) this.$refs.bubble.textContent = text;
        node.tsHover = text;
        node.tsCell = -1;
        if (node.dataset.at === this.at.join()) this.$refs.told.textContent = text.replaceAll("\n", ". ");
      }
    },
    pointed(e) {
      const cell = e.target.closest(".ts-cell"), bubble = this.$refs.bubble;
      if (!cell || !cell.tsHover) { bubble.hidden = true; return; }
      bubble.textContent = cell.tsHover;
      bubble.hidden = false;
      const box = bubble.getBoundingClientRect();
      bubble.style.left = Math.min(e.clientX + 14, window.innerWidth - box.width - 8) + "px";
      bubble.style.top = (e.clientY + 18 + box.height > window.innerHeight ? e.clientY - box.height - 10 : e.clientY + 18) + "px";
    },
    left() { this.$refs.bubble.hidden = true; },
  },
};
