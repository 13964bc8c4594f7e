"""MLflow (https://mlflow.org) for rlnb."""
