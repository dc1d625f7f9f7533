/** The `source` of every event on a bus. */
export const eventSource = "starling";
