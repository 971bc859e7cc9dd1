// This file holds the text that people see from this package.

package doctor

const (
	textCheckBroke      = "one of the checks failed unexpectedly"
	textSQLite          = "SQLite in the home"
	textSQLiteAnd       = "SQLite in the home; "
	textRedisVersion    = "Redis is version "
	textNoAppendOnly    = "Redis doesn't keep an append-only file: restarting Redis would lose messages"
	textPostgresVersion = "PostgreSQL is version %d"
	textNoModelKey      = "Parley has no key to send: set model.api_key, or OPENAI_API_KEY if the file names no base_url"
	textNoEmbeddingsKey = "Parley has no key to send: set embeddings.api_key"

	textJudged      = "%s answered a harmless test call with %q in %d ms; it judges %s"
	textNoAnswer    = "%s didn't answer within %v"
	textCheckServer = "check whether its server is overloaded, or is still loading the model"
	textUnjudged    = "; until it gives verdicts, people are asked about the calls that it should judge"
	textNoVerdict   = " answered with something that isn't a verdict"
	textSlowJudge   = "; that's longer than %s, so people would be asked instead"
	textBetterJudge = "name a model that follows instructions better: "
	textFasterJudge = "name a faster model, or allow it more time: "

	textSubscriptionNew     = "it hasn't been sent any events yet"
	textSubscriptionFine    = "it last accepted an event at %s; events waiting: %d"
	textSubscriptionFailing = "it hasn't accepted anything since %s: %s (attempts: %d); events waiting: %d"
	textSubscriptionWaits   = "nothing has been posted yet; events waiting: %d"
	textSubscriptionDropped = "; events dropped: %d, most recently at %s"
	textSubscriptionUnknown = "I couldn't look at its events: %v"
	textSubscriptionRemedy  = "check the program at its url, and check url and secret in [subscriptions.%s]"
	textSubscriptionServe   = "run parley serve (in a fleet, a gateway): it posts them"

	textIndexed        = "%d entries are indexed"
	textIndexBehind    = "; %d newer ones are read with each search, and will be indexed soon"
	textIndexMissing   = "; %d can't be found yet"
	textIndexStray     = "; %d indexed entries no longer exist"
	textIndexUnknown   = "the index can't be checked: %v"
	textEmbedding      = "%s answers in %d ms with %d dimensions; %d entries have vectors"
	textVectorsWaiting = "; at most %d are still waiting for theirs"
	textNoVectors      = "; until they've been created, recall matches words only"
	textOtherVectors   = "; these are from %s, with %d dimensions: until they've been recreated, recall matches words only"
	textWordsAlone     = "; entries without vectors are found by words only, and so is everything while this model can't be reached"
	textVectorsRemedy  = "run parley serve: it creates them"
	textIndexRemedy    = "run parley serve: it indexes what's missing, and notices within a day if the whole index has to be rebuilt"
)
