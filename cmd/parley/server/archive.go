package server

import "parley/cmd/parley/server/archives"

// newArchive returns the part that moves the audit to its archive.
func newArchive(on foundation) *archives.Part {
	return archives.New(archives.Needs{
		Settings: on.settings.Load, Table: on.home.Store.Archive(), Bus: on.home.Bus, Serves: on.role.Serves(), Spool: on.home.Dir,
		Keep: auditRetention(on.settings.Load()), Ready: on.home.MayArchive, Point: on.point, Log: on.log,
	})
}
