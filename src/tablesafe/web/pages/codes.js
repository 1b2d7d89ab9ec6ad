// The codes of a dimension, those side by side together: each can be drawn onto another, or chosen by a click or by keys.
export default {
  template: `<div class="ts-codes" role="group" :aria-label="label">
    <div v-for="g in groups" :key="g.above" class="ts-siblings" role="group" :aria-label="g.above">
      <span class="ts-above" aria-hidden="true">{{ g.above }}</span>
      <button v-for="c in g.codes" :key="c.code" type="button" draggable="true" :title="c.text"
        :class="{ over: over === c.code }" :aria-pressed="picked.includes(c.code) ? 'true' : 'false'"
        @dragstart="begin($event, c.code)" @dragend="drawn = over = ''" @dragover="near($event, c.code)"
        @dragleave="over = ''" @drop.prevent="drop(c.code)" @click="$emit('turn', c.code)">{{ c.text }}</button>
    </div>
  </div>`,
  props: { label: String, groups: Array, picked: Array },
  data: () => ({ drawn: "", over: "" }),
  methods: {
    begin(e, code) {
      this.drawn = code;
      e.dataTransfer.effectAllowed = "move";
      e.dataTransfer.setData("text/plain", code);
    },
    near(e, code) {
      if (!this.drawn || this.drawn === code) return;
      e.preventDefault();
      this.over = code;
    },
    drop(code) {
      const many = this.picked.includes(this.drawn) ? this.picked : [this.drawn];
      if (this.drawn && this.drawn !== code) this.$emit("merge", [...new Set([code, ...many])]);
      this.drawn = this.over = "";
    },
  },
};
