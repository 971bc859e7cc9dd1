package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/sessions/search"
	"parley/sessions/sqldb"
)

// checkIndex compares the index of what was said with what is there; none if there is no index yet. What else is wrong
// with the store, other findings say.
func checkIndex(ctx context.Context, cfg *config.Config) []Finding {
	place := string(cfg.Store.URL)
	if place == "" {
		place = filepath.Join(cfg.Home, home.StoreFile)
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var s search.State
	has := false
	err := sqldb.Look(ctx, place, func(db *sqldb.DB) (err error) {
		if has, err = db.HasTable(ctx, "entry_words"); err != nil || !has {
			return err
		}
		s, err = search.NewTable(db).State(ctx)
		return err
	})
	if err != nil {
		return []Finding{{Part: "recall", State: note, Detail: fmt.Sprintf(textIndexUnknown, err)}}
	}
	if !has {
		return nil
	}
	return []Finding{judgeIndex(s)}
}

// judgeIndex returns the finding about an index in that state.
func judgeIndex(s search.State) Finding {
	f := Finding{Part: "recall", State: fine, Detail: fmt.Sprintf(textIndexed, s.Indexed)}
	if s.Behind > 0 {
		f.Detail += fmt.Sprintf(textIndexBehind, s.Behind)
	}
	if missing := s.Missing + s.Waiting; missing > 0 {
		f.State, f.Detail = note, f.Detail+fmt.Sprintf(textIndexMissing, missing)
		f.Remedy = textIndexRemedy
	}
	if s.Stray > 0 {
		f.State, f.Detail = wrong, f.Detail+fmt.Sprintf(textIndexStray, s.Stray)
		f.Remedy = textIndexRemedy
	}
	return f
}
