/** The concurrency of an account, shared by all its functions. */
export interface AccountPool {
  /** Takes a slot, which `leave` releases. @returns false if no slot is free. */
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
