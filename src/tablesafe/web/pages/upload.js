// Files by a click, from the keyboard, or dropped: each is sent to the app as it is chosen, and its fate is told.
export default {
  template: `<div class="ts-upload" :class="{ over }" @dragover.prevent="over = true" @dragleave="over = false" @drop.prevent="dropped">
    <label class="ts-choose"><span>{{ label }}</span>
      <input ref="input" type="file" multiple :aria-label="label" @change="chosen"></label>
    <ul v-if="files.length" aria-live="polite"><li v-for="f in files" :key="f.key">{{ f.name }}: {{ f.state }}</li></ul>
  </div>`,
  props: { label: String, most: Number, words: Object },
  data: () => ({ files: [], over: false, count: 0 }),
  methods: {
    chosen() {
      this.send([...this.$refs.input.files]);
      this.$refs.input.value = "";
    },
    dropped(e) {
      this.over = false;
      this.send([...e.dataTransfer.files]);
    },
    send(files) {
      const fit = files.filter((f) => f.size <= this.most);
      if (fit.length < files.length) this.$emit("rejected");
      if (!fit.length) return;
      this.$emit("added", fit.map((f) => f.name));
      fit.forEach((f) => this.one(f));
    },
    one(file) {
      this.files.push({ name: file.name, state: "0%", key: (this.count += 1) });
      const at = this.files[this.files.length - 1], form = new FormData(), request = new XMLHttpRequest();
      form.append("file", file, file.name);
      request.upload.onprogress = (e) => { at.state = Math.round((100 * e.loaded) / Math.max(e.total, 1)) + "%"; };
      request.onload = () => {
        const good = request.status === 200;
        at.state = this.words[good ? "here" : "refused"];
        this.$emit(good ? "uploaded" : "failed", [file.name, request.responseText]);
      };
      request.onerror = () => {
        at.state = this.words["broken off"];
        this.$emit("failed", [file.name, ""]);
      };
      request.open("POST", "/upload");
      request.send(form);
    },
  },
};
