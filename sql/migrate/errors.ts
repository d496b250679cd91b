/** The database was migrated by a newer release than this one. */
export class SchemaTooNew extends Error {
  constructor(found: number, known: number) {
    super(
      `the database schema is at version ${found} but this release knows only up to ${known}: ` +
        'deploy the newer release again',
    )
    this.name = 'SchemaTooNew'
  }
}

/** The server cannot hold this schema. */
export class UnsupportedDatabase extends Error {
  override name = 'UnsupportedDatabase'
}

/** A file failed and changed nothing. The message names file and line, `cause` is the driver's error. */
export class MigrationFailed extends Error {
  override name = 'MigrationFailed'
}

/** There was no connection, or it was lost, in all attempts. `cause` is the last error. */
export class DatabaseUnreachable extends Error {
  override name = 'DatabaseUnreachable'
}
