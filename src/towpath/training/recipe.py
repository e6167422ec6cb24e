from towpath.methods.recipe import Recipe, Resolved  # noqa
