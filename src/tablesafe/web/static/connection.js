// After the connection is lost: try again while there is hope, and stop, and say so, when there is none.
(() => {
  const MOST_TRIES = 24; // socket.io waits up to 5 s between two
  const GONE = "The app does not answer any more: it was ended, or the machine sleeps.";
  const ANEW = "The app was started anew, or your session has ended: what this page shows is gone there. "
    + "Open the address that 'tablesafe serve' printed last.";
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
        if (!answer.ok) end(socket, ANEW);
      } catch {
        if (tries >= MOST_TRIES) end(socket, GONE);
      }
      asking = false;
    });
  }

  function end(socket, words) {
    if (document.getElementById("ts-ended")) return;
    socket.io.reconnection(false);
    socket.disconnect();
    document.getElementById("popup").remove();
    const box = document.createElement("div"), text = document.createElement("p"), button = document.createElement("button");
    box.id = "ts-ended";
    box.setAttribute("role", "alertdialog");
    box.setAttribute("aria-label", "The connection has ended");
    text.textContent = words;
    button.textContent = "Try again";
    button.type = "button";
    button.addEventListener("click", () => window.location.reload());
    box.append(text, button);
    document.body.append(box);
    button.focus();
  }
})();
