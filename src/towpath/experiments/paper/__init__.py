"""The paper's tables and figures as declarations: what is fitted on what, evaluated how, what was claimed."""
