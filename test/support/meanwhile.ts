/** Repeats something for as long as the work takes; fails when either does, after both have ended. */
export async function meanwhile(work: Promise<void>, again: () => Promise<void>): Promise<void> {
  let state: "working" | "over" = "working";
  const ended = work.finally(() => {
    state = "over";
  });
  const repeating = (async () => {
    while (state === "working") await again();
  })();
  await Promise.allSettled([ended, repeating]);
  await Promise.all([ended, repeating]);
}
