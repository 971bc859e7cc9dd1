package doctor

import (
	"context"
	"fmt"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/models"
	"parley/sessions/search"
	"parley/sessions/search/vectors"
	"parley/sessions/sqldb"
)

// checkIndex compares the search index with the sessions; it returns no finding if there is no index yet. Other
// findings report what else is wrong with the store.
func checkIndex(ctx context.Context, cfg *config.Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var s search.State
	var v vectors.State
	has := false
	err := home.WithTable(ctx, cfg, "entry_words", func(db *sqldb.DB) (err error) {
		has = true
		if s, err = search.NewTable(db).State(ctx); err != nil || cfg.Embeddings.Model == "" {
			return err
		}
		if hasVectors, err := db.HasTable(ctx, "entry_vectors"); err != nil || !hasVectors {
			return err
		}
		v, err = vectors.Store{DB: db}.State(ctx)
		return err
	})
	if err != nil {
		return []Finding{{Part: "recall", State: note, Detail: fmt.Sprintf(textIndexUnknown, err)}}
	}
	if !has {
		return nil
	}
	if cfg.Embeddings.Model == "" {
		return []Finding{judgeIndex(s)}
	}
	return []Finding{judgeIndex(s), checkEmbedding(ctx, cfg, v)}
}

// checkEmbedding asks the embedding model for a vector, and compares the stored vectors with it.
func checkEmbedding(ctx context.Context, cfg *config.Config, v vectors.State) Finding {
	f := Finding{Part: "embeddings", State: fine}
	who := cfg.Embeddings.Model + " at " + models.EmbeddingServer(cfg)
	e, err := models.NewEmbedding(cfg, nil)
	var got [][]float32
	began := time.Now()
	if err == nil {
		got, err = e.Embed(ctx, []string{"hello"})
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, who+": "+failureInWords(err)+textWordsAlone, remedyForModel(cfg, "embeddings", "embeddings.model", err)
		return f
	}
	f.Detail = fmt.Sprintf(textEmbedding, who, time.Since(began).Milliseconds(), len(got[0]), v.Vectors)
	switch {
	case v.Identity == vectors.Identity{}:
		f.State, f.Detail, f.Remedy = note, f.Detail+textNoVectors, textVectorsRemedy
	case v.Identity.Model != cfg.Embeddings.Model || v.Identity.Dimensions != len(got[0]):
		f.State, f.Detail, f.Remedy = note, f.Detail+fmt.Sprintf(textOtherVectors, v.Identity.Model, v.Identity.Dimensions), textVectorsRemedy
	case v.Waiting > 0:
		f.Detail += fmt.Sprintf(textVectorsWaiting, v.Waiting)
	}
	return f
}

// judgeIndex returns the finding about an index in that state.
func judgeIndex(s search.State) Finding {
	f := Finding{Part: "recall", State: fine, Detail: fmt.Sprintf(textIndexed, s.Indexed)}
	if s.Unindexed > 0 {
		f.Detail += fmt.Sprintf(textIndexBehind, s.Unindexed)
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
