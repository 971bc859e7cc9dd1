package config

// A ModelChoice says which model an agent asks: the table with its settings and, if the agent names another model
// on the same server, its name.
type ModelChoice struct {
	Table string // the table that contains its server and its key: "model", or "models.NAME"
	Name  string // the model's name, if it is not the one in the table
	Key   string // the setting that chose this model, for messages to the operator
	Demo  bool   // whether it is the built-in demo
}

// ModelsOf returns the models that an agent asks, in order. The first is the one that the agent names, or else that
// of [model]; the others are asked if it doesn't answer.
func (c *Config) ModelsOf(agent string) []ModelChoice {
	a := c.Agents[agent]
	list := []ModelChoice{{Table: "model", Key: "model.name", Demo: c.Model.Demo}}
	if _, further := c.Models[a.Model]; further {
		list[0] = ModelChoice{Table: "models." + a.Model, Key: "models." + a.Model + ".name"}
	} else if a.Model != "" && a.Model != c.Model.Name {
		list[0] = ModelChoice{Table: "model", Name: a.Model, Key: "agents." + agent + ".model", Demo: c.Model.Demo || a.Model == demoName}
	}
	fallback := a.Fallback
	if fallback == nil {
		fallback = c.Model.Fallback
	}
	for _, name := range fallback {
		if table := "models." + name; list[0].Table != table {
			list = append(list, ModelChoice{Table: table, Key: table + ".name"})
		}
	}
	return list
}

// TitlesOf returns the model that makes titles for an agent's conversations; false if none does. The demo makes
// none.
func (c *Config) TitlesOf(agent string) (choice ModelChoice, ok bool) {
	return c.choiceNamed(c.Agents[agent].Titles, "agents."+agent+".titles")
}

// Judge returns the model that judges tool calls; false if none does.
func (c *Config) Judge() (choice ModelChoice, ok bool) {
	return c.choiceNamed(c.Guard.Model, "guard.model")
}

// ReadersOf returns all models that read what is said to an agent: those that judge its calls and make titles, and
// then those of ModelsOf.
func (c *Config) ReadersOf(agent string) []ModelChoice {
	var all []ModelChoice
	for _, find := range []func() (ModelChoice, bool){c.Judge, func() (ModelChoice, bool) { return c.TitlesOf(agent) }} {
		if choice, ok := find(); ok {
			all = append(all, choice)
		}
	}
	return append(all, c.ModelsOf(agent)...)
}

// choiceNamed returns the model that the setting key names; false if it names none or the demo, or if no server is known
// for that model.
func (c *Config) choiceNamed(name, key string) (choice ModelChoice, ok bool) {
	if _, further := c.Models[name]; further {
		return ModelChoice{Table: "models." + name, Key: "models." + name + ".name"}, true
	}
	if name == "" || name == demoName || c.Model.Demo || !c.Model.Configured {
		return ModelChoice{}, false
	}
	if name == c.Model.Name {
		return ModelChoice{Table: "model", Key: "model.name"}, true
	}
	return ModelChoice{Table: "model", Name: name, Key: key}, true
}

// HasModel reports whether a model is configured that answers for an agent: one in [models] that the agent names,
// or else that of [model].
func (c *Config) HasModel(agent string) bool {
	first := c.ModelsOf(agent)[0]
	return c.Model.Configured || first.Demo || first.Table != "model"
}

// AnyModel reports whether a model is configured that answers for any of the agents.
func (c *Config) AnyModel() bool {
	for name := range c.Agents {
		if c.HasModel(name) {
			return true
		}
	}
	return false
}

// OnlyDemo reports whether each agent asks the built-in demo, and no real model before that.
func (c *Config) OnlyDemo() bool {
	for name := range c.Agents {
		if !c.ModelsOf(name)[0].Demo {
			return false
		}
	}
	return true
}
