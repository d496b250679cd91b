import type { Database } from './database.ts'
import { createFold, type FoldOptions } from './fold.ts'

/** One fold a database and route, made when the route first runs there. */
export function perDatabase<Call>(make: (db: Database) => Call): (db: Database) => Call {
  const made = new WeakMap<Database, Call>()
  return (db) => {
    const call = made.get(db) ?? make(db)
    made.set(db, call)
    return call
  }
}

/** A small write that folds: `run` writes all items in one statement. Items of one key go one after the other. */
export function foldedWrite<Item>(
  options: Pick<FoldOptions<Item, void>, 'weight' | 'maxWeight'> & {
    key: (item: Item) => string
    run: (db: Database, items: Item[]) => Promise<unknown>
  },
): (db: Database, item: Item) => Promise<void> {
  const foldOf = perDatabase((db) =>
    createFold<Item, void>({
      ...options,
      run: async (items) => {
        await options.run(db, items)
        return items.map(() => undefined)
      },
    }),
  )
  return (db, item) => foldOf(db)(item)
}

/** A list that many ask for at once: who asks while it is being read shares the next reading of it with the others. */
export function sharedRead<Key extends string | number, Body = Buffer>(
  run: (db: Database, key: Key) => Promise<Body>,
): (db: Database, key: Key) => Promise<Body> {
  const foldOf = perDatabase((db) =>
    createFold<Key, Body>({
      run: async (keys) => {
        const bodies = new Map<Key, Promise<Body>>()
        for (const key of keys) if (!bodies.has(key)) bodies.set(key, run(db, key))
        return Promise.all(keys.map((key) => bodies.get(key)!))
      },
    }),
  )
  return (db, key) => foldOf(db)(key)
}
