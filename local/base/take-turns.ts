/** Runs an action after all earlier actions of the same key have ended, whether they succeeded or failed. */
export type TakeTurns = <Result>(key: string, action: () => Promise<Result>) => Promise<Result>;

/** Runs one action at a time per key, in the order of the calls. */
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
