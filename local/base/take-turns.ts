/** Runs an action when those of the same key that came before have ended, well or not. */
export type TakeTurns = <Result>(key: string, action: () => Promise<Result>) => Promise<Result>;

/** One action at a time for each key, in the order in which they come. */
export function takeTurns(): TakeTurns {
  const last = new Map<string, Promise<unknown>>();
  return (key, action) => {
    const turn = (last.get(key) ?? Promise.resolve()).then(action);
    const over = turn
      .catch(() => {})
      .then(() => {
        if (last.get(key) === over) last.delete(key);
      });
    last.set(key, over);
    return turn;
  };
}
