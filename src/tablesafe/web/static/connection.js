// After the connection is lost: try again while there is hope, and stop, and say so, when there is none.
(() => {
  const MOST_TRIES = 24; // socket.io waits up to 5 s between two
  // Texts in the language of the page: it has them in its head.
  const words = (name) => document.querySelector(`meta[name="ts-${name}"]`)?.content || name;
  const wait = setInterval(() => {
    if (!window.socket) return;
    clearInterval(wait);
    watch(window.socket);
  }, 100);

  function watch(socket) {
    let tries = 0, asking = false;
    socket.on("connect", () => { tries = 0; });
    socket.io.on("reconnect_error", async () => {
      tries += 1;
      if (asking) return;
      asking = true;
      try {
        // Whoever answers, but does not know us, will not know us the next time either.
        const answer = await fetch("/job.toml", { cache: "no-store", redirect: "manual" });
        if (!answer.ok) end(socket, "anew");
      } catch {
        if (tries >= MOST_TRIES) end(socket, "gone");
      }
      asking = false;
    });
  }

  function end(socket, why) {
    if (document.getElementById("ts-ended")) return;
    socket.io.reconnection(false);
    socket.disconnect();
    document.getElementById("popup").remove();
    const box = document.createElement("div"), text = document.createElement("p"), button = document.createElement("button");
    box.id = "ts-ended";
    box.setAttribute("role", "alertdialog");
    box.setAttribute("aria-label", words("ended"));
    text.textContent = words(why);
    button.textContent = words("again");
    button.type = "button";
    button.addEventListener("click", () => window.location.reload());
    box.append(text, button);
    document.body.append(box);
    button.focus();
  }
})();
