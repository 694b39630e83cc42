/**
 * Keys that work anywhere on the page, unless the reader is typing.
 */

/** Whether the key belongs to a field or an open window. */
function isTyping(event) {
  const target = event.composedPath()[0];
  if (!(target instanceof Element)) return false;
  if (target.closest("dialog[open]")) return true;
  if (target instanceof HTMLInputElement) return target.type !== "radio" && target.type !== "range";
  return (
    target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable
  );
}

/**
 * @param {EventTarget} target
 * @param {Object<string, () => void>} actions by key, lower case
 * @returns {() => void} stops listening
 */
export function listenForKeys(target, actions) {
  const onKey = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    action();
    if (event.key !== "Escape") event.preventDefault();
  };
  target.addEventListener("keydown", onKey);
  return () => target.removeEventListener("keydown", onKey);
}
