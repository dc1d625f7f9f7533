/** What an account runs at once, of all its functions. */
export interface AccountPool {
  /** @returns whether there was a place; who has one leaves it. */
  enter(): boolean;
  leave(): void;
}

export function accountPool(places: number): AccountPool {
  let taken = 0;
  return {
    enter() {
      if (taken >= places) return false;
      taken += 1;
      return true;
    },
    leave() {
      taken -= 1;
    },
  };
}
