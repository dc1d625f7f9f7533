/** Repeats an action while a promise is pending. It fails when either fails, after both have ended. */
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
