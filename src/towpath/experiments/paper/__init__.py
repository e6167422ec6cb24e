"""The paper's tables and figures as declarations: what is fitted on what, judged how, what was claimed."""
