package sqlbook

// Compact is the migration after which sends and parts have no other key than their own.
const Compact = schemaCompact
