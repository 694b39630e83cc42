/**
 * Keys that work anywhere on the page, unless the reader is typing text.
 */

/** What text is typed into. */
const TEXT_TYPES = new Set(["text", "search"]);

/** These go through the options of a closed select, one by one. */
const STEPS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"]);

/** Whether text is typed into it. */
function isText(target) {
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
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    // An open window has its own keys.
    if (field.closest?.("dialog[open]")) return;
    // It leaves a field; what is selected on the map stays.
    if (event.key === "Escape" && (isText(field) || field instanceof HTMLSelectElement)) return leave();
    if (isText(field)) return;
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
