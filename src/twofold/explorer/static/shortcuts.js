/**
 * Keys that work anywhere on the page, unless the reader is typing text.
 */

/** What text is typed into. */
const TEXT_TYPES = new Set(["text", "search"]);

/** These go through the options of a closed select, one by one. */
const STEPS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"]);

/** Whether the key belongs to a field or an open window. */
function isTyping(target) {
  if (!(target instanceof Element)) return false;
  if (target.closest("dialog[open]")) return true;
  if (target instanceof HTMLInputElement) return TEXT_TYPES.has(target.type);
  return target instanceof HTMLTextAreaElement || target.isContentEditable;
}

/**
 * @param {EventTarget} target
 * @param {Object<string, () => void>} actions by key, lower case
 * @param {() => void} leave gives the focus back to the map, once something was chosen in a select
 * @returns {() => void} stops listening
 */
export function listenForKeys(target, actions, leave) {
  let isStepping = false;
  const onKey = (event) => {
    const field = event.composedPath()[0];
    isStepping = STEPS.has(event.key) && !event.altKey;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(field)) return;
    // Of a select it closes the list; what is selected on the map stays.
    if (event.key === "Escape" && field instanceof HTMLSelectElement) return leave();
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    action();
    // A select would take the letter for the beginning of an option.
    if (event.key !== "Escape") event.preventDefault();
  };
  const onPointer = () => (isStepping = false);
  const onChange = (event) => !isStepping && event.composedPath()[0] instanceof HTMLSelectElement && leave();
  const listeners = { keydown: onKey, pointerdown: onPointer, change: onChange };
  for (const [type, listener] of Object.entries(listeners)) target.addEventListener(type, listener);
  return () => {
    for (const [type, listener] of Object.entries(listeners)) target.removeEventListener(type, listener);
  };
}
