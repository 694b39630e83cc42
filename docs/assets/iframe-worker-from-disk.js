// Browsers start no worker for a page opened from disk. There, the search runs in a hidden frame
// that looks like a worker from outside, and from inside like the scope of one.
if (location.protocol === "file:") {
  window.Worker = class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.deliver(data);
      this.scope.importScripts = (...urls) => this.load(urls);
      this.ready = this.load([url]);
    }

    // To the page.
    deliver(data) {
      const event = new MessageEvent("message", { data });
      if (this.onmessage) this.onmessage(event);
      this.dispatchEvent(event);
    }

    // To the frame, once its script is there.
    postMessage(data) {
      this.ready.then(() =>
        this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data })),
      );
    }

    // One script after the other.
    load(urls) {
      const inside = this.scope.document;
      return urls.reduce(
        (before, url) =>
          before.then(
            () =>
              new Promise((done, failed) => {
                const script = inside.createElement("script");
                script.src = url;
                script.onload = done;
                script.onerror = failed;
                inside.body.append(script);
              }),
          ),
        Promise.resolve(),
      );
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };
}
