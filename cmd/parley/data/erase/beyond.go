package erase

// Beyond returns the data that no erasure reaches, such as old homes, and what the operator can do about each. asides are
// the old homes that a restore has left; archived, filed and shared say whether the audit is archived, whether it is
// written to files, and whether the data is in a database that several processes share.
func Beyond(asides []string, archived, filed, shared bool) (kept []NotErased) {
	for _, dir := range asides {
		kept = append(kept, NotErased{What: dir, Why: "a restore set it aside; delete it by hand"})
	}
	if archived {
		kept = append(kept, NotErased{What: "lines in the audit's archive", Why: "nobody can tell anymore whose they are: the key that says so has been deleted"})
	}
	if shared {
		if filed {
			kept = append(kept, NotErased{What: "audit files of other processes", Why: "each process has its own; run parley forget there, too"})
		}
		kept = append(kept, NotErased{What: "the database server's own files and logs, and Redis's", Why: "it's up to the operator to keep or rotate them"})
	}
	return kept
}
