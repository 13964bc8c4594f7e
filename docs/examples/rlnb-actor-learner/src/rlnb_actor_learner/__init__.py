"""PPO with one learner, which has no env, and several actors."""
