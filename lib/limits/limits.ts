/**
 * The limits of requests, each with its value. Those that an operator may change are variables of
 * `lib/config/settings.ts` and listed at the end; the others are constants, so that any replica accepts what another
 * one does. Limits of a field stand beside its schema.
 */
const KIB = 1024
const MIB = 1024 * KIB

// Bodies, in bytes. Above these: 413. The number of entries of a list stands beside its schema (`MAX_BATCH_FLOWS`).

/** A body of any other route, as sent and as unpacked. */
export const MAX_CORE_BODY_BYTES = 2 * MIB
/** Samples or minutes of the containers of a node. */
export const MAX_COMPUTE_BYTES = 16 * MIB
export const MAX_EXECUTABLES_BYTES = 8 * MIB
export const MAX_CAPABILITIES_BYTES = 4 * MIB
export const MAX_HEARTBEATS_BYTES = 4 * MIB
/** The denials of a node since its last post. */
export const MAX_DRAIN_BYTES = 4 * MIB
/** Findings or an SBOM, as sent; as unpacked `SUPPLYCHAIN_MAX_DECOMPRESSED_BYTES` holds. */
export const MAX_PAYLOAD_BYTES = MIB
/** A result of an image's signatures and attestations. */
export const MAX_RESULT_BYTES = 256 * KIB
export const MAX_VEX_BYTES = MIB
/** Network policies to try. */
export const MAX_POLICIES_BYTES = MIB
/** Options of an exported seccomp profile: ten times a body with two full lists of the longest names. */
export const MAX_EXPORT_BODY_BYTES = MIB
/** Findings, SBOMs and results must have arrived within this time. Above: 408. */
export const PAYLOAD_DEADLINE_MS = 30_000

// JSON is counted before it is parsed. Above these: 413, or 400 for nesting that is too deep.

/**
 * Smaller bodies are parsed without a prescan: they cannot cost much, and reading each of their bytes takes a tenth of
 * the time of an ordinary batch.
 */
export const MIN_PRESCAN_BYTES = 64 * KIB
/** A body below `MIN_PRESCAN_BYTES` cannot nest deeper. Objects of Kubernetes nest to 30. */
export const MAX_BODY_DEPTH = MIN_PRESCAN_BYTES / 2
/** Keys and containers. A body full of flows has 98 000; parsing as many takes 9 ms. */
export const MAX_BODY_MEMBERS = 130_000
/**
 * Values and containers: more than the names of system calls that 2 MiB can hold. Parsing as many numbers takes 12 ms.
 */
export const MAX_BODY_VALUES = 400_000
/**
 * A key costs V8 1 to 2 us if no earlier object had it after the same preceding keys. Counted for each text that is
 * parsed at once: a body, or a piece of a list. Large bodies from real clusters repeat their keys.
 */
export const MAX_KEY_SEQUENCES = 20_000
/** Lists are parsed in pieces of at least this many bytes, each in a millisecond or two. */
export const MIN_PIECE_BYTES = 64 * KIB
/** Nesting of a value that is stored as it was sent. PostgreSQL and `JSON.stringify` fail in the thousands. */
export const MAX_JSON_DEPTH = 100
/** Integers beyond 2^53 in a body that stores them to the digit; each costs as much as a hundred characters. */
export const MAX_EXACT_INTEGERS = 10_000
/** Nesting of findings, SBOMs and results, which use 6 levels. */
export const MAX_PAYLOAD_DEPTH = 64
/**
 * Values, keys and containers of one finding or component; a finding has some forty, and each file path or license adds
 * one.
 */
export const MAX_ELEMENT_MEMBERS = 10_000
/** The same outside the list of findings or components. */
export const MAX_OTHER_MEMBERS = 20_000
/**
 * All elements together may have `MAX_ELEMENT_MEMBERS`, plus one for each this many bytes: `"epss":0,` takes nine for a
 * key and a value.
 */
export const MIN_BYTES_PER_MEMBER = 4
/** Keys and values of a result; the fullest has 4 500. */
export const MAX_RESULT_PARTS = 16_384
/** Digits of a number in a result: reading a hundred thousand takes 20 ms. */
export const MAX_RESULT_DIGITS = 1_000

// Memory that requests hold together. Above these they wait; after the wait: 503.

/** Bodies from their prescan until they are stored. */
export const BODIES_KIB = 20 * KIB
/** Longest wait of a body for its share of `BODIES_KIB` or `UNPACKED_KIB`. */
export const BODY_WAIT_MS = 5_000
/**
 * Bytes of all bodies that are arriving or wait to be parsed. Above: refuses the body larger than
 * `ALWAYS_ACCEPTED_BYTES` that has been arriving the longest.
 */
export const INCOMING_BODIES_BYTES = 16 * MIB
/** A body up to this size is never refused for `INCOMING_BODIES_BYTES`: ordinary posts pass. */
export const ALWAYS_ACCEPTED_BYTES = 64 * KIB
/**
 * Bodies that are being unpacked: one of the longest, or four ordinary ones, as many as there are threads that unpack.
 */
export const UNPACKED_KIB = 8 * KIB
/** Findings and SBOMs that wait while another one is stored: eight of the largest. */
export const MAX_WAITING_PAYLOAD_BYTES = 8 * MAX_PAYLOAD_BYTES
/** A waiting payload counts for at least this much, with its request and connection: no more than 1 024 wait. */
export const MIN_WAITING_PAYLOAD_BYTES = 8 * KIB

// Answers.

/** Clients that follow flows, of each replica. Above: 503. */
export const MAX_FOLLOWERS = 200

/** Answers about edges that are kept, plain and packed. Further ones are built for each request. */
export const EDGE_ANSWERS_BYTES = 16 * MIB
/** Shorter answers are not worth compressing. */
export const GZIP_MIN_BYTES = 8 * KIB

// Variables: `BROKER_READ_MEMORY_BUDGET_MB` (lists that are read at once) and `BROKER_READ_ACQUIRE_WAIT_MS` (the
// longest wait of a list for that memory), `SUPPLYCHAIN_MAX_DECOMPRESSED_BYTES` (findings or an SBOM as unpacked),
// `BROKER_MEMORY_LIMIT_MB` (lowers the first two).
