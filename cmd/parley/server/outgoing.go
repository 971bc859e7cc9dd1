package server

import "parley/cmd/parley/outfiles"

// outgoing are the files that wait to be sent.
func (s *Server) outgoing() outfiles.Files { return outfiles.Files{Store: s.home.Outgoing} }

// sweeper removes what crashes have left of them.
func (s *Server) sweeper() outfiles.Sweeper {
	return outfiles.Sweeper{Files: s.outgoing(), Bus: s.home.Bus, Book: s.home.Book, Log: s.log}
}
